package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// MadeAt is the time of that many milliseconds since 1970, zero for 0.
func MadeAt(milliseconds int64) time.Time {
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds).UTC()
}

// Dated notes when the checkpoint of a view was made, unless the view is of a subgraph.
func Dated(v thread.StateView, r thread.StateRequest, when time.Time) thread.StateView {
	if len(r.Subgraph) == 0 {
		v.CreatedAt = when
	}
	return v
}

// StateView shows a snapshot of the thread's root graph as it was asked for: itself, or a subgraph under way in it.
func StateView(graph string, s *pregel.Snapshot, r thread.StateRequest) (thread.StateView, error) {
	for i, node := range r.Subgraph {
		at := slices.IndexFunc(s.Tasks, func(t pregel.TaskSnapshot) bool { return t.Name == node && t.State != nil })
		if at < 0 {
			return thread.StateView{}, NoSubgraph(graph, r.Thread, r.Subgraph[:i+1], nil)
		}
		s = s.Tasks[at].State
	}
	return SnapshotView(graph, r.Thread, s, r.Subgraphs), nil
}

// SnapshotView shows one snapshot, with the states of its subgraphs when those are asked for.
func SnapshotView(graph, threadID string, s *pregel.Snapshot, subgraphs bool) thread.StateView {
	v := thread.StateView{Thread: threadID, Graph: graph, Checkpoint: s.Checkpoint, Parent: s.Parent, Source: string(s.Source),
		Step: s.Step, Values: jsonValues(s.Values), Next: s.Next}
	for _, t := range s.Tasks {
		task := taskView(t, s.Step+1)
		if subgraphs && t.State != nil {
			inner := SnapshotView(graph, threadID, t.State, true)
			task.State = &inner
		}
		v.Tasks = append(v.Tasks, task)
	}
	return v
}

func taskView(t pregel.TaskSnapshot, step int) thread.TaskView {
	task := thread.TaskView{Node: t.Name, Path: t.Path, Done: t.Done, Error: t.Error}
	for _, q := range t.Questions {
		task.Questions = append(task.Questions, QuestionView(q, t.Name, step))
	}
	for _, w := range t.Wrote {
		if task.Result == nil {
			task.Result = map[string]json.RawMessage{}
		}
		task.Result[w.Channel] = json.RawMessage(w.Value)
	}
	return task
}

func jsonValues(values map[string]pregel.Value) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(values))
	for name, value := range values {
		out[name] = value
	}
	return out
}

// HistoryView selects what was asked for.
func HistoryView(graph string, checkpoints []past.Checkpoint, r thread.HistoryRequest) ([]thread.CheckpointView, error) {
	if r.Before != "" {
		at := slices.IndexFunc(checkpoints, func(c past.Checkpoint) bool { return c.Checkpoint == r.Before })
		if at < 0 {
			return nil, NoCheckpoint(graph, r.Thread, r.Before)
		}
		checkpoints = checkpoints[at+1:]
	}
	out := []thread.CheckpointView{}
	for _, c := range checkpoints {
		if r.Source != "" && r.Source != string(c.Source) || r.Step != nil && *r.Step != c.Step {
			continue
		}
		if r.Limit > 0 && len(out) == r.Limit {
			break
		}
		v := thread.CheckpointView{Step: c.Step, Checkpoint: c.Checkpoint, Parent: c.Parent, Source: string(c.Source),
			Ran: c.Ran, Wrote: c.Wrote, Next: c.Next, CreatedAt: c.When}
		if r.Values {
			v.Values = jsonValues(c.Values)
			for _, t := range c.Tasks {
				v.Tasks = append(v.Tasks, taskView(t, c.Step+1))
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// ReadThread reads a stored thread, with stand-ins for reducers that are not here.
func ReadThread(spec *pregel.Spec, state pregel.Value, reducers map[string]pregel.Reducer) (*pregel.Program, *pregel.Thread, error) {
	all := Unreadable(spec)
	maps.Copy(all, reducers)
	program, err := pregel.Compile(spec, all)
	if err != nil {
		return nil, nil, err
	}
	thread, err := program.DecodeThread(state)
	return program, thread, err
}

// Unreadable stands in for the custom reducers of a graph that this process does not have: enough to read what is
// stored, which needs no reducing.
func Unreadable(spec *pregel.Spec) map[string]pregel.Reducer {
	out := map[string]pregel.Reducer{}
	for _, ch := range spec.Channels {
		if _, known := pregel.Builtin(ch.Reducer); ch.Kind == pregel.KindReduce && !known {
			out[ch.Reducer] = absentReducer(ch.Reducer)
		}
	}
	for _, sub := range spec.Subgraphs {
		for name, r := range Unreadable(sub) {
			out[name] = r
		}
	}
	return out
}

// absentReducer is the name of a reducer without its function.
type absentReducer string

// Name implements pregel.Reducer.
func (r absentReducer) Name() string { return string(r) }

// Zero implements pregel.Reducer.
func (r absentReducer) Zero() pregel.Value { return nil }

// Reduce implements pregel.Reducer.
func (r absentReducer) Reduce(pregel.Value, []pregel.Value) (pregel.Value, error) {
	return nil, fmt.Errorf("the reducer %q is not part of this process", string(r))
}

// ReducersOf are the custom reducers of a graph and its subgraphs, none for nil.
func ReducersOf(g *graphadapter.Graph) map[string]pregel.Reducer {
	if g == nil {
		return nil
	}
	return g.AllReducers()
}

// Trace is what the events of a thread's runs tell beyond its checkpoints.
type Trace struct {
	mu    sync.Mutex
	step  int
	asked map[string]asked
}

// asked is where a question comes from; depth counts the graphs around the node.
type asked struct {
	node        string
	step, depth int
}

// Observe is told what the engine reports.
func (t *Trace) Observe(e pregel.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.Kind == pregel.EventInterrupt && e.Task != nil:
		t.question(e)
	case e.Namespace == "" && e.Kind == pregel.EventTaskStart:
		t.step = e.Step
	}
}

// question remembers the innermost node: a subgraph's node repeats the questions of the nodes inside.
func (t *Trace) question(e pregel.Event) {
	if t.asked == nil {
		t.asked = map[string]asked{}
	}
	for _, q := range e.Questions {
		if known, ok := t.asked[q.ID]; !ok || known.depth < len(e.Nodes) {
			t.asked[q.ID] = asked{node: e.Task.Node, step: e.Step, depth: len(e.Nodes)}
		}
	}
}

// Complete fills in what only the events told: where the open questions come from. It returns those with that.
func (t *Trace) Complete(v *thread.View, asked []pregel.Question) []pregel.OpenQuestion {
	t.mu.Lock()
	defer t.mu.Unlock()
	v.Step = t.step
	var open []pregel.OpenQuestion
	for _, q := range asked {
		from := t.asked[q.ID]
		open = append(open, pregel.OpenQuestion{Question: q, Node: from.node, Step: from.step})
		if !slices.Contains(v.Nodes, from.node) {
			v.Nodes = append(v.Nodes, from.node)
		}
	}
	v.Questions = QuestionsOf(ForPeople(open))
	v.Waits = WaitViews(ForEvents(open), func(string) time.Time { return time.Time{} })
	return open
}

// CancelledError is the cause of a cancelled run's context.
type CancelledError struct {
	Reason string
	// Drops says that the superstep under way is dropped.
	Drops bool
}

// DropsSuperstep reports that to the driver of the run.
func (e *CancelledError) DropsSuperstep() bool { return e.Drops }

// Error implements error in one line.
func (e *CancelledError) Error() string { return e.Reason }

// ConcludeView says how a run ended.
func ConcludeView(v *thread.View, ended graphadapter.RunResult, err error) {
	v.Output, v.Budget = ended.Output, thread.ViewOfBudget(ended.Meter)
	var cancelled *CancelledError
	switch {
	case errors.As(err, &cancelled), errors.Is(err, context.Canceled):
		v.Status, v.Error = thread.StatusCancelled, err.Error()
	case err != nil:
		v.Failure = pregel.AsNodeError(v.Graph, "", err)
		v.Status, v.Error = FailureStatus(v.Failure), err.Error()
	case len(ended.Questions) > 0:
		v.Status = thread.StatusWaiting
		if !slices.ContainsFunc(ended.Questions, func(q pregel.Question) bool { return q.Event == "" }) {
			v.Status = thread.StatusWaitingEvent
		}
	case ended.Breakpoint, ended.Drained != "":
		v.Status, v.Drained = thread.StatusStopped, ended.Drained
	default:
		v.Status = thread.StatusFinished
	}
}
