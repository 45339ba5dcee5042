package remote

import (
	"context"
	"errors"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// StateOf implements runtime.Runtime.
func (c *reader) StateOf(ctx context.Context, g *graphadapter.Graph, r thread.StateRequest) (thread.StateView, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return thread.StateView{}, err
	}
	g = c.graphOr(g, last)
	if r.Checkpoint == "" {
		return c.stateNow(ctx, g, last, r)
	}
	past, _, err := c.pastWith(ctx, g, last, r.Checkpoint)
	if err != nil {
		return thread.StateView{}, err
	}
	snapshot, ok, err := past.Snapshot(r.Checkpoint)
	if err == nil && !ok {
		err = runtime.NoCheckpoint(last.graph, r.Thread, r.Checkpoint)
	}
	if err != nil {
		return thread.StateView{}, c.explain(err, last.graph, r.Thread)
	}
	v, err := runtime.StateView(last.graph, snapshot, r)
	v.Status = c.statusNow(last, past)
	return runtime.Dated(v, r, past.When(r.Checkpoint)), err
}

// stateNow reads what a closed run left in its last event, and asks an open one. A worker that does not answer, or a last
// event that says nothing, leaves the history.
func (c *reader) stateNow(ctx context.Context, g *graphadapter.Graph, last *lastRun, r thread.StateRequest) (thread.StateView, error) {
	if !last.open {
		if v, err := c.stateLeft(ctx, g, last, r); err == nil || errors.Is(err, thread.ErrNotFound) {
			return v, err
		}
	}
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var s protocol.State
	asked := c.somebodyPolls(probe, last.graph, last.queue)
	if asked == nil {
		asked = c.query(probe, last, protocol.QueryState, &s)
	}
	switch {
	case ctx.Err() != nil:
		return thread.StateView{}, ctx.Err()
	case unanswered(asked):
		return c.stateReplayed(ctx, g, last, r, asked)
	case asked != nil:
		return thread.StateView{}, asked
	}
	v, err := runtime.StateView(last.graph, &s.Snapshot, r)
	v.Status, v.Questions = thread.Status(s.Status), runtime.QuestionsOf(s.Questions)
	if !last.open { // it asks nothing any more
		v.Status, v.Questions = statusOf(last.status), nil
	}
	return runtime.Dated(v, r, runtime.MadeAt(s.Made)), err
}

// stateLeft reads the state from a closed run's last event.
func (c *reader) stateLeft(ctx context.Context, g *graphadapter.Graph, last *lastRun, r thread.StateRequest) (thread.StateView, error) {
	event, err := c.closingEvent(ctx, last)
	if err != nil {
		return thread.StateView{}, err
	}
	left, said, err := c.leftIn(ctx, last, event)
	if err != nil || !said || left.State == nil {
		return thread.StateView{}, fmt.Errorf("the run's last event does not hold its state: %w", err)
	}
	program, th, err := runtime.ReadThread(left.Spec, left.State, runtime.ReducersOf(g))
	if err != nil {
		return thread.StateView{}, err
	}
	if len(runtime.Unreadable(left.Spec)) > 0 && g == nil {
		// What its finished tasks wrote may need reducers that are not here: then a worker is asked.
		if _, err := program.Snapshot(th, th.Head, true); err != nil {
			return thread.StateView{}, err
		}
	}
	v, err := stateOfThread(last, program, th, r)
	if v.Status == thread.StatusFailed {
		v.Status = runtime.FailureStatus(left.Failure)
	}
	for _, line := range left.Lines {
		if line.Checkpoint == v.Checkpoint {
			v = runtime.Dated(v, r, runtime.MadeAt(line.At))
		}
	}
	return v, err
}

// stateOfThread shows a thread as it is now.
func stateOfThread(last *lastRun, program *pregel.Program, th *pregel.Thread, r thread.StateRequest) (thread.StateView, error) {
	snapshot, err := program.Now(th)
	if err != nil {
		return thread.StateView{}, err
	}
	v, err := runtime.StateView(last.graph, snapshot, r)
	v.Status = statusOf(last.status)
	if last.open {
		v.Questions = runtime.QuestionsOf(runtime.ForPeople(program.OpenQuestions(th)))
	}
	return v, err
}

// stateReplayed reads the state from the run's history. noWorker is why nobody was asked.
func (c *reader) stateReplayed(ctx context.Context, g *graphadapter.Graph, last *lastRun, r thread.StateRequest, noWorker error) (thread.StateView, error) {
	past, _, err := c.pastOf(ctx, g, last, func(*chain) bool { return true })
	var unreadable *workflows.UnreadableError
	if errors.As(err, &unreadable) {
		return thread.StateView{}, noWorker
	}
	if err != nil {
		return thread.StateView{}, err
	}
	program, th := past.Thread()
	if program == nil {
		return thread.StateView{}, noWorker
	}
	v, err := stateOfThread(last, program, th, r)
	v.Status = c.statusNow(last, past)
	return runtime.Dated(v, r, past.When(v.Checkpoint)), err
}

// statusNow is the status of the thread whose runs were replayed.
func (c *reader) statusNow(last *lastRun, past *past.Past) thread.Status {
	if !last.open {
		return statusOf(last.status)
	}
	switch past.Status() {
	case pregel.StatusWaiting:
		program, thread := past.Thread()
		return runtime.WaitingStatus(program.OpenQuestions(thread))
	case pregel.StatusBreakpoint, pregel.StatusDrained:
		return thread.StatusStopped
	case pregel.StatusDone:
		return thread.StatusFinished
	}
	return thread.StatusRunning
}

// earlierState is a thread as it starts again from one of its checkpoints.
type earlierState struct {
	state pregel.Value
	// branches says that a run from there begins with a checkpoint of its own.
	branches bool
}

func (c *reader) stateAt(ctx context.Context, g *graphadapter.Graph, last *lastRun, checkpoint string, use pregel.Use) (earlierState, error) {
	var at earlierState
	past, _, err := c.pastWith(ctx, g, last, checkpoint)
	if err != nil {
		return at, err
	}
	th, ok := past.At(checkpoint, use)
	if !ok {
		return at, runtime.NoCheckpoint(last.graph, last.thread, checkpoint)
	}
	program, _ := past.Thread()
	source := th.Head.Checkpoint.Source
	at.branches = source != pregel.SourceUpdate && source != pregel.SourceFork
	if at.state, err = program.EncodeThread(th); err != nil {
		return at, &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: last.thread, Message: "the checkpoint cannot be stored", Cause: err}
	}
	return at, nil
}
