package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

func (s *Server) stateRoutes() []route {
	return []route{
		{"GET", "/threads/{thread_id}/state", "The newest state", s.getState},
		{"GET", "/threads/{thread_id}/state/{checkpoint_id}", "The state at a checkpoint", s.getState},
		{"POST", "/threads/{thread_id}/state/checkpoint", "The state at a checkpoint, of a subgraph too", s.getStateAt},
		{"POST", "/threads/{thread_id}/state", "Updates the state", s.updateState},
		{"GET", "/threads/{thread_id}/history", "Checkpoints, newest first", s.getHistory},
		{"POST", "/threads/{thread_id}/history", "Checkpoints, newest first", s.getHistory},
	}
}

func (s *Server) getState(w http.ResponseWriter, r *http.Request) error {
	return s.showState(w, r, checkpointRef{CheckpointID: r.PathValue("checkpoint_id")}, affirmed(r, "subgraphs"))
}

// stateAtBody names the checkpoint whose state is asked for.
type stateAtBody struct {
	Checkpoint checkpointRef `json:"checkpoint" says:"always"`
	Subgraphs  bool          `json:"subgraphs"`
}

func (s *Server) getStateAt(w http.ResponseWriter, r *http.Request) error {
	var body stateAtBody
	if err := read(w, r, &body); err != nil {
		return err
	}
	return s.showState(w, r, body.Checkpoint, body.Subgraphs)
}

func (s *Server) showState(w http.ResponseWriter, r *http.Request, at checkpointRef, subgraphs bool) error {
	t, err := s.record(r)
	if err != nil {
		return err
	}
	at.CheckpointID = checkpointIn(t.Names(), at.CheckpointID)
	if at.Namespace != "" {
		out, err := inners{s}.at(r.Context(), t, at, subgraphs)
		if err == nil {
			answer(w, http.StatusOK, out)
		}
		return err
	}
	v, err := s.client.State(r.Context(), thread.StateRequest{Thread: t.Under, Checkpoint: at.CheckpointID, Subgraphs: subgraphs})
	if errors.Is(err, thread.ErrNotFound) || err == nil && v.Checkpoint == "" {
		answer(w, http.StatusOK, nothingAt(t.ID, at))
		return nil
	}
	if err != nil {
		return err
	}
	x, err := s.renderer(r.Context(), t, v.Graph)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, x.state(v, nil))
	return nil
}

// beforeRef is a checkpoint as clients write it: its id, an object with it, or a configuration with it.
type beforeRef string

func (beforeRef) forms() string { return "checkpoint and no id of one" }

// UnmarshalJSON takes any of the three.
func (b *beforeRef) UnmarshalJSON(text []byte) error {
	var id string
	if json.Unmarshal(text, &id) == nil {
		*b = beforeRef(id)
		return nil
	}
	var ref struct {
		checkpointRef
		Configurable checkpointRef `json:"configurable"`
	}
	err := json.Unmarshal(text, &ref)
	*b = beforeRef(ref.CheckpointID)
	if *b == "" {
		*b = beforeRef(ref.Configurable.CheckpointID)
	}
	return misfit[beforeRef](err)
}

// historyBody says which checkpoints are asked for.
type historyBody struct {
	Limit      *int          `json:"limit"`
	Before     beforeRef     `json:"before"`
	Metadata   object        `json:"metadata"`
	Checkpoint checkpointRef `json:"checkpoint"`
}

func (s *Server) getHistory(w http.ResponseWriter, r *http.Request) error {
	var body historyBody
	if r.Method == http.MethodGet {
		if query := r.URL.Query(); query.Has("limit") {
			n, err := strconv.Atoi(query.Get("limit"))
			if err != nil {
				return refuse(http.StatusUnprocessableEntity, "limit %q is no number", query.Get("limit"))
			}
			body.Limit = &n
		}
		body.Before = beforeRef(r.URL.Query().Get("before"))
	} else if err := read(w, r, &body); err != nil {
		return err
	}
	limit, least := 1, 1
	if r.Method == http.MethodGet {
		least = 0
	}
	if body.Limit != nil {
		limit = *body.Limit
	}
	if limit < least || limit > mostListed {
		return refuse(http.StatusUnprocessableEntity, "limit %d is not within %d and %d", limit, least, mostListed)
	}
	t, err := s.record(r)
	if err != nil {
		return err
	}
	out, err := s.history(r.Context(), t, body, limit)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, out)
	return nil
}

// history shows the checkpoints that a request asks for, without those that were rolled back.
func (s *Server) history(ctx context.Context, t record.Thread, body historyBody, limit int) ([]stateOut, error) {
	out := []stateOut{}
	q := thread.HistoryRequest{Thread: t.Under, Before: checkpointIn(t.Names(), string(body.Before)), Values: true}
	x, _, in, err := inners{s}.within(ctx, t, body.Checkpoint.Namespace)
	if errors.Is(err, thread.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if in != nil {
		q.Subgraph, q.Checkpoint = in.nodes, in.since
	}
	only, metadata := checkpointIn(t.Names(), body.Checkpoint.CheckpointID), raw(body.Metadata)
	made, err := s.client.History(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, c := range made {
		if len(out) == limit {
			break
		}
		state := x.past(c, in)
		if slices.Contains(t.Hidden, c.Checkpoint) || only != "" && c.Checkpoint != only || string(metadata) != "null" && !contains(raw(state.Metadata), metadata) {
			continue
		}
		out = append(out, state)
	}
	return out, nil
}

// updateBody is an update of a state.
type updateBody struct {
	Values       json.RawMessage `json:"values" says:"null"`
	AsNode       string          `json:"as_node" says:"word"`
	Checkpoint   checkpointRef   `json:"checkpoint"`
	CheckpointID string          `json:"checkpoint_id" says:"null"`
}

// updateOut is the checkpoint that an update has made, in the three forms in which clients look for it.
type updateOut struct {
	Checkpoint   place  `json:"checkpoint"`
	Configurable place  `json:"configurable"`
	ID           string `json:"checkpoint_id"`
}

func (s *Server) updateState(w http.ResponseWriter, r *http.Request) error {
	var body updateBody
	if err := read(w, r, &body); err != nil {
		return err
	}
	t, err := s.record(r)
	switch {
	case err != nil:
		return err
	case madeFor(t) == "":
		return refuse(http.StatusBadRequest, "no graph has run on the thread yet, and its metadata has no graph_id")
	case t.Busy():
		return refuse(http.StatusConflict, "a run of the thread is under way")
	}
	spec, err := s.spec(r.Context(), madeFor(t))
	if err != nil {
		return err
	}
	u := thread.UpdateRequest{Graph: spec.Name, Thread: t.Under, Checkpoint: checkpointIn(t.Names(), cmp.Or(body.Checkpoint.CheckpointID, body.CheckpointID)), By: by(r.Context())}
	in := spec
	if body.Checkpoint.Namespace != "" {
		if in, err = (inners{s}).updated(r.Context(), t, spec, body.Checkpoint.Namespace, &u); err != nil {
			return err
		}
	}
	updates, err := updatesOf(in, body.Values, body.AsNode)
	if err != nil {
		return err
	}
	u.Updates = [][]graphadapter.StateUpdate{updates}
	var v thread.StateView
	err = s.records.Edit(r.Context(), t.ID, func() (err error) {
		v, err = edit(r.Context(), s.client, u)
		if err == nil {
			t, err = s.records.Note(r.Context(), t.ID, record.StandsOf(v))
		}
		return err
	})
	if err != nil {
		return err
	}
	s.index.note(t.Line())
	p := &place{Thread: t.ID, Checkpoint: checkpointOut(t.Names(), v.Checkpoint)}
	if in != spec {
		if p, err = (inners{s}).newest(r.Context(), t, body.Checkpoint.Namespace); err != nil {
			return err
		}
	}
	answer(w, http.StatusOK, updateOut{*p, *p, p.Checkpoint})
	return nil
}

// edits is how often an update of a state is tried that somebody beside this process came before, and settles how long it is waited
// for that one's end.
const (
	edits   = 5
	settles = 2 * time.Second
)

// edit updates a state. Who comes second behind another server or the command line comes again when that one has ended.
func edit(ctx context.Context, c *superstep.Client, u thread.UpdateRequest) (v thread.StateView, err error) {
	for range edits {
		if v, err = c.Update(ctx, u); !errors.Is(err, thread.ErrRunning) {
			return v, err
		}
		within, stop := context.WithTimeout(ctx, settles)
		view, waited := c.Wait(within, u.Thread)
		stop()
		if waited != nil || view.Status == thread.StatusPaused {
			break // it is a run, and no update
		}
	}
	return v, err
}

// madeFor is the graph of a thread: the one that has run last, or the one that the thread was made for; "" for none.
func madeFor(t record.Thread) string { return cmp.Or(t.Graph, object(t.Metadata).text("graph_id")) }

// updatesOf are the values of an update: an object of fields, a list of such, or nothing.
func updatesOf(spec *pregel.Spec, values json.RawMessage, node string) ([]graphadapter.StateUpdate, error) {
	if !given(values) {
		return []graphadapter.StateUpdate{{AsNode: node}}, nil
	}
	var each []object
	if json.Unmarshal(values, &each) != nil {
		var one object
		if json.Unmarshal(values, &one) != nil {
			return nil, refuse(http.StatusUnprocessableEntity, "values is no object of fields and no list of such")
		}
		each = []object{one}
	}
	conversations := channelsOf(spec, nil)
	update := graphadapter.StateUpdate{AsNode: node}
	for _, fields := range each {
		for _, name := range namesOf(spec) {
			v, ok := fields[name]
			if !ok {
				continue
			}
			if conversations[name] {
				var err error
				if v, err = messagesIn(v); err != nil {
					return nil, refuse(http.StatusBadRequest, "%v", err)
				}
			}
			update.Values = append(update.Values, pregel.Write{Channel: name, Value: pregel.Value(v)})
		}
	}
	return []graphadapter.StateUpdate{update}, nil
}

// making makes threads that have a state from the start.
type making struct{ *Server }

// mostSteps bounds the supersteps with which a thread is made.
const mostSteps = 100

// steps are the supersteps with which a thread is made, as updates of a graph's state. What does not fit is refused before the thread is
// made.
func (s making) steps(ctx context.Context, graph string, all []madeStep) ([][]graphadapter.StateUpdate, error) {
	switch {
	case len(all) == 0:
		return nil, nil
	case len(all) > mostSteps:
		return nil, refuse(http.StatusUnprocessableEntity, "%d supersteps: at most %d", len(all), mostSteps)
	case graph == "":
		return nil, refuse(http.StatusBadRequest, "supersteps need a graph: name it in metadata.graph_id")
	}
	spec, err := s.spec(ctx, graph)
	if err != nil {
		return nil, err
	}
	var out [][]graphadapter.StateUpdate
	for i, step := range all {
		if len(step.Updates) == 0 {
			return nil, refuse(http.StatusUnprocessableEntity, "superstep %d has no updates", i)
		}
		var updates []graphadapter.StateUpdate
		for _, u := range step.Updates {
			if !takesUpdate(spec, u.AsNode) {
				return nil, refuse(http.StatusBadRequest, "superstep %d: graph %q has no node %q", i, graph, u.AsNode)
			}
			one, err := u.writes(spec)
			if err != nil {
				return nil, err
			}
			updates = append(updates, one...)
		}
		out = append(out, updates)
	}
	return out, nil
}

// writes are what an update of a superstep writes, its command included.
func (u *stepUpdate) writes(spec *pregel.Spec) ([]graphadapter.StateUpdate, error) {
	all, err := updatesOf(spec, u.Values, u.AsNode)
	if err != nil || u.Command == nil {
		return all, err
	}
	if given(u.Command.Goto) || given(u.Command.Resume) {
		return nil, refuse(http.StatusBadRequest, "a superstep with which a thread is made goes where %q leads: its command has an update only", u.AsNode)
	}
	if !given(u.Command.Update) {
		return all, nil
	}
	fields, err := u.Command.fields()
	if err != nil {
		return nil, err
	}
	more, err := updatesOf(spec, raw(fields), u.AsNode)
	if err != nil {
		return nil, err
	}
	all[0].Values = append(all[0].Values, more[0].Values...)
	return all, nil
}

// takesUpdate reports whether a state can be updated in the name of a node, "" for whichever it can be inferred to be.
func takesUpdate(spec *pregel.Spec, node string) bool {
	return slices.Contains([]string{"", pregel.Start, pregel.End, pregel.AsInput}, node) ||
		slices.ContainsFunc(spec.Nodes, func(n pregel.NodeSpec) bool { return n.Name == node })
}

// stepped makes the state of a thread that was just made for a graph. A thread that has a state, or is another graph's, stays as it is. A
// server that is killed in between leaves a thread without a state, which the same request with if_exists do_nothing then makes.
func (s making) stepped(ctx context.Context, t record.Thread, steps [][]graphadapter.StateUpdate, graph string) (record.Thread, error) {
	if len(steps) == 0 || len(t.Runs) > 0 || t.Stands != "" || madeFor(t) != graph {
		return t, nil
	}
	v, err := s.client.Update(ctx, thread.UpdateRequest{Graph: graph, Thread: t.Under, Updates: steps, ID: "supersteps", By: by(ctx)})
	if err != nil {
		return t, err
	}
	if t, err = s.records.Note(ctx, t.ID, record.StandsOf(v)); err == nil {
		s.index.note(t.Line())
	}
	return t, err
}
