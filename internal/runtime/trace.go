package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

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
type CancelledError struct{ Reason string }

// Error implements error in one line.
func (e *CancelledError) Error() string { return e.Reason }

// ConcludeView says how a run ended.
func ConcludeView(v *thread.View, ended graphadapter.RunResult, err error) {
	v.Output = ended.Output
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
