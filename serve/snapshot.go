package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// protocolVersion is the version of the agent server whose protocol this is, and libraryVersion that of the LangGraph whose graphs
// behave as these do: clients look at them.
const (
	protocolVersion = "0.16.7"
	libraryVersion  = "1.2.22"
)

// taskOut is a task that a checkpoint leads to.
type taskOut struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Path       []any           `json:"path"`
	Error      *string         `json:"error"`
	Interrupts []asked         `json:"interrupts"`
	Checkpoint *place          `json:"checkpoint"`
	State      *stateOut       `json:"state"`
	Result     json.RawMessage `json:"result"`
}

// stateOut is a thread's state at a checkpoint.
type stateOut struct {
	Values     any        `json:"values"`
	Next       []string   `json:"next"`
	Tasks      []taskOut  `json:"tasks"`
	Metadata   object     `json:"metadata"`
	Created    *shownTime `json:"created_at"`
	Checkpoint *place     `json:"checkpoint"`
	Parent     *place     `json:"parent_checkpoint"`
	Interrupts []asked    `json:"interrupts"`
	ID         *string    `json:"checkpoint_id"`
	ParentID   *string    `json:"parent_checkpoint_id"`
}

// nothing is the state of a thread that has never run.
func nothing() stateOut {
	return stateOut{Values: object{}, Next: []string{}, Tasks: []taskOut{}, Interrupts: []asked{}}
}

// nothingAt is the state at a checkpoint that the thread does not have, which is named as it was asked for.
func nothingAt(thread string, at checkpointRef) stateOut {
	out := nothing()
	if at.CheckpointID != "" {
		out.Checkpoint = &place{Thread: thread, Namespace: at.Namespace, Checkpoint: at.CheckpointID}
		out.ID = &out.Checkpoint.Checkpoint
	}
	return out
}

// renderer shows states of one thread.
type renderer struct {
	thread        string
	record        record.Thread
	before        []record.Run // of the threads that this one was copied from, the oldest first
	spec          *pregel.Spec
	conversations map[string]bool
}

// names is the id of the thread that checkpoints and tasks are named by.
func (x *renderer) names() string { return cmp.Or(x.record.Named, x.thread) }

func (s *Server) renderer(ctx context.Context, t record.Thread, graph string) (*renderer, error) {
	spec, err := s.spec(ctx, graph)
	if err != nil {
		return nil, err
	}
	before, err := s.records.Before(ctx, t)
	return &renderer{thread: t.ID, record: t, before: before, spec: spec, conversations: channelsOf(spec, nil)}, err
}

// runAt is the run that made a checkpoint, nil when it is not known.
func (x *renderer) runAt(at time.Time) *record.Run {
	if found := ranAt(x.record.Runs, at); found != nil {
		return found
	}
	return ranAt(x.before, at)
}

func ranAt(runs []record.Run, at time.Time) *record.Run {
	var found *record.Run
	for i := range runs {
		// The record learns that a run has begun a moment after it has: what was made since the run before ended is this one's.
		if r := &runs[i]; !r.Began.IsZero() && (i == 0 || runs[i-1].Ended.Before(at)) && !r.Created.After(at.Add(time.Millisecond)) {
			found = r
		}
	}
	return found
}

// metadata is what a checkpoint says of itself.
func (x *renderer) metadata(source string, step int, at time.Time) object {
	m := object{"langgraph_version": raw(libraryVersion), "langgraph_api_version": raw(protocolVersion), "langgraph_host": raw("self-hosted")}
	for name, v := range x.record.Metadata {
		m[name] = v
	}
	m["source"], m["step"], m["parents"] = raw(source), raw(step), raw(object{})
	m["thread_id"], m["graph_id"] = raw(x.thread), raw(x.spec.Name)
	if r := x.runAt(at); r != nil {
		maps.Copy(m, settingsOf(r.Kwargs))
		maps.Copy(m, r.Metadata)
		m["run_id"], m["assistant_id"], m["run_attempt"] = raw(r.ID), raw(r.Assistant), raw(1)
	}
	return m
}

// secretNames are parts of names under which clients put what not everybody may read who reads a state; LangGraph leaves the same out.
var secretNames = []string{"key", "token", "secret", "password", "auth"}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(name, part) })
}

// settingsOf are the settings of a run that its checkpoints show: the plain values of config.configurable that are no secrets.
func settingsOf(kwargs json.RawMessage) object {
	var of struct{ Config config }
	if json.Unmarshal(kwargs, &of) != nil {
		return nil
	}
	maps.DeleteFunc(of.Config.Configurable, func(name string, v json.RawMessage) bool {
		return isReserved(name) || isSecret(name) || isEmpty(v) || v[0] == '{' || v[0] == '['
	})
	return of.Config.Configurable
}

// node is the spec of a node, within the subgraphs that lead to it.
func (x *renderer) node(within []string, name string) *pregel.NodeSpec {
	spec := x.spec
	for _, n := range within {
		if spec = spec.Subgraphs[n]; spec == nil {
			return nil
		}
	}
	at := slices.IndexFunc(spec.Nodes, func(n pregel.NodeSpec) bool { return n.Name == name })
	if at < 0 {
		return nil
	}
	return &spec.Nodes[at]
}

// state shows a state of a level.
func (x *renderer) state(v thread.StateView, in *level) stateOut {
	out := nothing()
	out.Values, out.Next = shown(v.Values, x.conversations), append([]string{}, v.Next...)
	if v.Checkpoint == "" {
		return out
	}
	at := v.CreatedAt
	if at.IsZero() {
		at = x.record.Updated
	}
	made := shownTime(at)
	out.Created = &made
	if in == nil {
		out.Metadata = x.metadata(v.Source, v.Step, v.CreatedAt)
	} else {
		out.Metadata, out.Created = x.inner(v.Source, v.Step, in), cmp.Or(in.around.Created, &made)
	}
	out.Checkpoint = x.place(v.Checkpoint, in)
	out.ID = &out.Checkpoint.Checkpoint
	if v.Parent != "" {
		out.Parent = x.place(v.Parent, in)
		out.ParentID = &out.Parent.Checkpoint
	}
	for _, t := range v.Tasks {
		if !slices.Contains(v.Next, t.Node) && !t.Done {
			out.Next = append(out.Next, t.Node)
		}
		task := x.task(t, &out, in, v.Step)
		out.Tasks = append(out.Tasks, task)
		out.Interrupts = append(out.Interrupts, task.Interrupts...)
	}
	return out
}

// task shows a task that a state leads to.
func (x *renderer) task(t thread.TaskView, of *stateOut, in *level, step int) taskOut {
	below := in.below(of, t, step)
	nodes := below.nodes[:len(below.nodes)-1]
	task := taskOut{ID: taskID(x.names(), strings.Join(below.space, "|")), Name: t.Node, Path: pathOf(t), Interrupts: askedOf(t.Questions)}
	if t.Error != nil {
		text := t.Error.Type + ": " + t.Error.Message
		task.Error = &text
	}
	if t.Result != nil || t.Done {
		result := object{}
		for name, v := range t.Result {
			if slices.Contains(namesOf(x.spec), name) || len(nodes) > 0 {
				result[name] = v
			}
		}
		task.Result = raw(shown(result, x.conversations))
	}
	switch n := x.node(nodes, t.Node); {
	case t.State != nil:
		state := x.state(*t.State, below)
		task.State = &state
	case n != nil && n.Subgraph != "":
		task.Checkpoint = &place{Thread: x.thread, Namespace: spaceOf(x.names(), below.space)}
	}
	return task
}

// pathOf is where a task comes from: an edge to its node, or a place in the list of what was sent.
func pathOf(t thread.TaskView) []any {
	if _, at, sent := strings.Cut(t.Path, ":"); sent {
		if n, err := strconv.Atoi(at); err == nil {
			return []any{"__pregel_push", n, false}
		}
	}
	return []any{"__pregel_pull", t.Node}
}

// past shows a checkpoint of the history of a level.
func (x *renderer) past(c thread.CheckpointView, in *level) stateOut {
	if c.Step == -1 && c.Source == "input" {
		c.Next = []string{pregel.Start}
	}
	return x.state(thread.StateView{Thread: x.thread, Graph: x.spec.Name, Checkpoint: c.Checkpoint, Source: c.Source, Step: c.Step,
		CreatedAt: c.CreatedAt, Values: c.Values, Parent: c.Parent, Next: c.Next, Tasks: c.Tasks}, in)
}

// threadOut is a thread.
type threadOut struct {
	ID         string             `json:"thread_id"`
	Created    shownTime          `json:"created_at"`
	Updated    shownTime          `json:"updated_at"`
	State      shownTime          `json:"state_updated_at"`
	Metadata   object             `json:"metadata"`
	Status     string             `json:"status"`
	Config     object             `json:"config"`
	Values     any                `json:"values"`
	Interrupts map[string][]asked `json:"interrupts"`
	Error      *record.Failure    `json:"error"`
	// Extracted is what a search was asked to tell of it besides.
	Extracted object `json:"extracted,omitempty"`
}

// outputAt is the output of a thread at its newest checkpoint, as clients see it. What tasks of a superstep that has not ended wrote is no
// part of it, although the state shows it.
func (s *Server) outputAt(ctx context.Context, x *renderer, v thread.StateView) (map[string]json.RawMessage, error) {
	if slices.ContainsFunc(v.Tasks, func(t thread.TaskView) bool { return t.Done }) {
		at, err := s.client.State(ctx, thread.StateRequest{Thread: v.Thread, Checkpoint: v.Checkpoint})
		if err != nil {
			return nil, err
		}
		v = at
	}
	return shown(outputOf(x.spec, v.Values), x.conversations), nil
}

// threadOf shows a thread as it is now.
func (s *Server) threadOf(ctx context.Context, t record.Thread) (threadOut, error) {
	out := threadOut{ID: t.ID, Created: shownTime(t.Created), Updated: shownTime(t.Updated), State: shownTime(t.Moved), Metadata: t.Metadata, Status: t.Status(), Config: object{},
		Interrupts: map[string][]asked{}}
	if len(t.Runs) > 0 {
		out.Config["configurable"] = raw(object{})
	}
	if !t.Busy() {
		out.Error = t.Failure
	}
	v, err := s.client.State(ctx, thread.StateRequest{Thread: t.Under})
	if errors.Is(err, thread.ErrNotFound) || err == nil && v.Checkpoint == "" {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	x, err := s.renderer(ctx, t, v.Graph)
	if err != nil {
		return out, err
	}
	state := x.state(v, nil)
	if out.Values, err = s.outputAt(ctx, x, v); err != nil {
		return out, err
	}
	if !t.Busy() {
		out.Status = record.StandsOf(v)
		if t.Failure != nil { // also one that the thread refused, and whose questions are still open
			out.Status = record.Errors
		}
		if out.Error == nil && out.Status == record.Waits && t.Cancelled() {
			out.Error = record.WasCancelled()
		}
	}
	for _, task := range state.Tasks {
		if len(task.Interrupts) > 0 {
			out.Interrupts[task.ID] = task.Interrupts
		}
	}
	return out, nil
}
