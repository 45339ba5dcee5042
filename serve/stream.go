package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

func (s *Server) streamRoutes() []route {
	return []route{
		{"POST", "/threads/{thread_id}/runs/stream", "Asks for a run, and streams it", s.streamRun},
		{"POST", "/runs/stream", "Asks for a run on a thread of its own, and streams it", s.streamRun},
		{"GET", "/threads/{thread_id}/runs/{run_id}/stream", "Joins the stream of a run", s.joinStream},
		{"GET", "/threads/{thread_id}/stream", "Follows the runs of a thread", s.threadStream},
	}
}

// streaming is one client's stream of one run.
type streaming struct {
	server *Server
	out    *sse
	thread string
	run    string
	// prefix is before the ids of events, where they are of several runs.
	prefix    string
	modes     []string
	subgraphs bool
	resumable bool
	// bare says that the event that a stream begins with is left out: it is no event of a mode that was asked for, or it has gone by.
	bare bool
	// after is the rank of the last event that the client has, nil for none. ranks are those of the events that there are.
	after *rank
	ranks ranks
	// callbacks are the run's callback events, nil when none are told.
	callbacks *callbacks
}

func (s *Server) streamRun(w http.ResponseWriter, r *http.Request) error {
	var body runRequest
	if err := read(w, r, &body); err != nil {
		return err
	}
	stage := record.StageBegun
	if body.AfterSeconds > 0 {
		stage = "" // the stream says meanwhile that it is there
	}
	a, err := takenIn(r, s, body)
	if err != nil {
		return err
	}
	defer a.keepThread(s)()
	if err := a.begin(r.Context(), s, stage); err != nil {
		if gone(r.Context()) {
			a.leave(s)
		}
		return err
	}
	at := a.location()
	w.Header().Set("Location", at+"/stream")
	if a.apart {
		at = "/runs/" + a.run.ID
	}
	w.Header().Set("Content-Location", at)
	if a.apart {
		w.Header().Set("Location", "/threads/"+a.thread.ID+"/runs/"+a.run.ID+"/stream")
	}
	f := &streaming{server: s, out: newSSE(w), thread: a.thread.ID, run: a.run.ID, modes: body.modes(), subgraphs: body.StreamSubgraphs, resumable: body.StreamResumable}
	defer f.out.close()
	err = f.follow(r.Context(), a.thread)
	if gone(r.Context()) {
		a.leave(s)
	}
	f.ended(r.Context(), err)
	return nil
}

func (s *Server) joinStream(w http.ResponseWriter, r *http.Request) error {
	t, run, cancel, err := s.joined(r)
	if err != nil {
		return err
	}
	modes, subgraphs, err := askedFor(*run)
	if err != nil {
		return err
	}
	f := &streaming{server: s, thread: t.ID, run: run.ID, modes: modes, subgraphs: subgraphs, resumable: run.Resumable}
	if wanted := listed(r, "stream_mode"); len(wanted) > 0 {
		if err := checkModes(wanted); err != nil {
			return err
		}
		f.modes, f.bare = wanted, true
	}
	from := r.Header.Get("Last-Event-ID")
	at := locationOf(t.ID, run.ID)
	w.Header().Set("Content-Location", at)
	w.Header().Set("Location", at+"/stream")
	f.out = newSSE(w)
	defer f.out.close()
	if !run.Resumable && run.Over() || from == "" && run.Over() {
		return nil
	}
	if !run.Resumable && run.Place != "" {
		f.bare = true
	}
	if run.Resumable && from != "-1" {
		after := rankIn(from)
		f.after = &after
	}
	err = f.follow(r.Context(), t)
	if gone(r.Context()) {
		s.leave(f.thread, f.run, by(r.Context()), cancel)
	}
	f.ended(r.Context(), err)
	return nil
}

// ended tells of an error that ended the stream.
func (f *streaming) ended(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || errors.Is(err, errSent) {
		return
	}
	said := faultOf(err)
	if said.status == http.StatusInternalServerError {
		f.server.log.Errorw("a stream failed", "thread", f.thread, "run", f.run, "error", err)
	}
	if err := f.out.send("error", record.Failure{Type: "Error", Message: said.detail}, ""); err != nil {
		return // the client has gone
	}
}

// follow sends the events of the run until it has ended.
func (f *streaming) follow(ctx context.Context, t record.Thread) error {
	if f.after == nil && !f.bare {
		if err := f.send(event{"metadata", map[string]any{"run_id": f.run, "attempt": 1}}, f.ranks.at); err != nil {
			return err
		}
	}
	t, err := f.server.begun(ctx, t, f.run)
	if err != nil {
		return err
	}
	if run := t.Run(f.run); run != nil && run.Place != "" && len(f.modes) > 0 {
		if err := f.told(ctx, t, *run); err != nil {
			return err
		}
	}
	if t, err = f.server.records.Await(ctx, t, f.run, record.StageEnded); err != nil {
		if errors.Is(err, record.ErrMissing) { // a thread of its own is gone with its run
			return nil
		}
		return err
	}
	f.server.index.note(t.Line())
	switch run := t.Run(f.run); {
	case run == nil:
	case run.Failure != nil:
		return f.send(event{"error", run.Failure}, f.ranks.next(nil))
	case f.callbacks != nil && run.Status == record.Success:
		return f.send(f.callbacks.ends(), f.ranks.next(nil))
	}
	return nil
}

// begun waits until a run has begun, or has ended.
func (s *Server) begun(ctx context.Context, t record.Thread, run string) (record.Thread, error) {
	if at := t.Run(run); at == nil || at.Over() || at.Place != "" {
		return t, nil
	}
	return s.records.Await(ctx, t, run, record.StageBegun)
}

// told sends what the thread streams of the run. A stream that breaks off is read anew, if its events have numbers: what the client has
// is not sent again.
func (f *streaming) told(ctx context.Context, t record.Thread, run record.Run) (err error) {
	for range tries {
		f.ranks = ranks{}
		err = f.parts(ctx, t, run)
		if err == nil || ctx.Err() != nil || !f.resumable || errors.Is(err, errSent) || errors.Is(err, thread.ErrNotFound) {
			return err
		}
	}
	return err
}

// parts sends what the thread streams of the run.
func (f *streaming) parts(ctx context.Context, t record.Thread, run record.Run) error {
	x, err := f.server.renderer(ctx, t, graphOf(t, run))
	if err != nil {
		return err
	}
	tell := newTeller(x, run, f.modes, f.subgraphs)
	if f.callbacks = tell.callbacks; f.callbacks != nil {
		if err := f.send(f.callbacks.begins(), f.ranks.next(nil)); err != nil {
			return err
		}
	}
	r := thread.StreamRequest{Thread: t.Under, Modes: tell.streamed(), Subgraphs: f.subgraphs || f.callbacks != nil, Ordered: f.resumable, Invocation: run.Place}
	for p, err := range f.server.client.Stream(ctx, r) {
		if err != nil {
			return err
		}
		for _, e := range tell.of(p) {
			if err := f.send(e, f.ranks.next(&p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// send writes an event. Its id is its rank; what the client has already is passed over.
func (f *streaming) send(e event, at rank) error {
	if f.resumable && f.after != nil && !at.behind(*f.after) {
		return nil
	}
	id := ""
	if f.resumable {
		id = f.prefix + at.id()
	}
	if err := f.out.send(e.name, e.data, id); err != nil {
		return errSent
	}
	f.after = &at
	return nil
}

// graphOf is the graph that a run is of. A run that has ended has forgotten how it began; a thread has one graph.
func graphOf(t record.Thread, run record.Run) string {
	if run.Start.Graph != "" {
		return run.Start.Graph
	}
	return t.Graph
}

// askedFor are the modes that a run was asked for in.
func askedFor(run record.Run) (modes []string, subgraphs bool, err error) {
	var asked struct {
		Modes     list `json:"stream_mode"`
		Subgraphs bool `json:"subgraphs"`
	}
	if err := json.Unmarshal(run.Kwargs, &asked); err != nil {
		return nil, false, err
	}
	if len(asked.Modes) == 0 {
		asked.Modes = list{"values"}
	}
	return asked.Modes, asked.Subgraphs, nil
}
