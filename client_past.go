package superstep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// StateOf returns a thread's state, now or at a checkpoint of its history, of the whole graph or of a subgraph under way.
// It needs no worker when this process can read the graph: all its reducers are Superstep's own.
//
// Errors: ErrNotFound for a thread, checkpoint or subgraph that there is not; ErrNoWorker; ErrNoServer.
func (c *Client) StateOf(ctx context.Context, r StateRequest) (StateView, error) {
	return c.stateOf(ctx, nil, r)
}

// State is StateOf for now.
func (c *Client) State(ctx context.Context, thread string) (StateView, error) {
	return c.StateOf(ctx, StateRequest{Thread: thread})
}

// HistoryOf returns a thread's checkpoints, newest first: those of all its runs that the server still has, of every
// branch. It needs no worker when this process can read the graph: all its reducers are Superstep's own.
//
// Errors: ErrNotFound for a thread, subgraph or checkpoint that there is not; ErrNoWorker; ErrNoServer.
func (c *Client) HistoryOf(ctx context.Context, r HistoryRequest) ([]CheckpointView, error) {
	return c.historyOf(ctx, nil, r)
}

// History is HistoryOf for all of a thread's checkpoints.
func (c *Client) History(ctx context.Context, thread string) ([]CheckpointView, error) {
	return c.HistoryOf(ctx, HistoryRequest{Thread: thread})
}

func (c *Client) stateOf(ctx context.Context, g *graphadapter.Graph, r StateRequest) (StateView, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return StateView{}, err
	}
	g = c.graphOr(g, last)
	if r.Checkpoint == "" {
		return c.stateNow(ctx, g, last, r)
	}
	past, err := c.pastWith(ctx, g, last, r.Checkpoint)
	if err != nil {
		return StateView{}, err
	}
	snapshot, ok, err := past.Snapshot(r.Checkpoint)
	if err == nil && !ok {
		err = noCheckpoint(last.graph, r.Thread, r.Checkpoint)
	}
	if err != nil {
		return StateView{}, c.explain(err, last.graph, r.Thread)
	}
	v, err := stateView(last.graph, snapshot, r)
	v.Status = c.statusNow(last, past)
	return v.dated(r, past.When(r.Checkpoint)), err
}

// stateNow reads what a closed run left in its last event, and asks an open one. A worker that does not answer, or a last
// event that says nothing, leaves the history.
func (c *Client) stateNow(ctx context.Context, g *graphadapter.Graph, last *lastRun, r StateRequest) (StateView, error) {
	if !last.open {
		if v, err := c.stateLeft(ctx, g, last, r); err == nil || errors.Is(err, ErrNotFound) {
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
		return StateView{}, ctx.Err()
	case errors.Is(asked, ErrNoWorker):
		return c.stateReplayed(ctx, g, last, r, asked)
	case asked != nil:
		return StateView{}, asked
	}
	v, err := stateView(last.graph, &s.Snapshot, r)
	v.Status, v.Questions = Status(s.Status), questionsOf(s.Questions)
	if !last.open { // it asks nothing any more
		v.Status, v.Questions = statusOf(last.status), nil
	}
	return v.dated(r, madeAt(s.Made)), err
}

// stateLeft reads the state from a closed run's last event.
func (c *Client) stateLeft(ctx context.Context, g *graphadapter.Graph, last *lastRun, r StateRequest) (StateView, error) {
	event, err := c.closingEvent(ctx, last)
	if err != nil {
		return StateView{}, err
	}
	left, said, err := c.leftIn(ctx, last, event)
	if err != nil || !said || left.State == nil {
		return StateView{}, fmt.Errorf("the run's last event does not hold its state: %w", err)
	}
	program, thread, err := readThread(left.Spec, left.State, reducersOf(g))
	if err != nil {
		return StateView{}, err
	}
	if len(unreadable(left.Spec)) > 0 && g == nil {
		// What its finished tasks wrote may need reducers that are not here: then a worker is asked.
		if _, err := program.Snapshot(thread, thread.Head, true); err != nil {
			return StateView{}, err
		}
	}
	v, err := stateOfThread(last, program, thread, r)
	if v.Status == StatusFailed {
		v.Status = failureStatus(left.Failure)
	}
	for _, line := range left.Lines {
		if line.Checkpoint == v.Checkpoint {
			v = v.dated(r, madeAt(line.At))
		}
	}
	return v, err
}

// readThread reads a stored thread, with stand-ins for reducers that are not here.
func readThread(spec *pregel.Spec, state pregel.Value, reducers map[string]pregel.Reducer) (*pregel.Program, *pregel.Thread, error) {
	all := unreadable(spec)
	maps.Copy(all, reducers)
	program, err := pregel.Compile(spec, all)
	if err != nil {
		return nil, nil, err
	}
	thread, err := program.DecodeThread(state)
	return program, thread, err
}

// stateOfThread shows a thread as it is now.
func stateOfThread(last *lastRun, program *pregel.Program, thread *pregel.Thread, r StateRequest) (StateView, error) {
	snapshot, err := program.Now(thread)
	if err != nil {
		return StateView{}, err
	}
	v, err := stateView(last.graph, snapshot, r)
	v.Status = statusOf(last.status)
	if last.open {
		v.Questions = questionsOf(forPeople(program.OpenQuestions(thread)))
	}
	return v, err
}

// stateReplayed reads the state from the run's history. noWorker is why nobody was asked.
func (c *Client) stateReplayed(ctx context.Context, g *graphadapter.Graph, last *lastRun, r StateRequest, noWorker error) (StateView, error) {
	past, err := c.pastOf(ctx, g, last, func(*chain) bool { return true })
	var unreadable *workflows.UnreadableError
	if errors.As(err, &unreadable) {
		return StateView{}, noWorker
	}
	if err != nil {
		return StateView{}, err
	}
	program, thread := past.Thread()
	if program == nil {
		return StateView{}, noWorker
	}
	v, err := stateOfThread(last, program, thread, r)
	v.Status = c.statusNow(last, past)
	return v.dated(r, past.When(v.Checkpoint)), err
}

// statusNow is the status of the thread whose runs were replayed.
func (c *Client) statusNow(last *lastRun, past *past.Past) Status {
	if !last.open {
		return statusOf(last.status)
	}
	switch past.Status() {
	case pregel.StatusWaiting:
		program, thread := past.Thread()
		return waitingStatus(program.OpenQuestions(thread))
	case pregel.StatusBreakpoint, pregel.StatusDrained:
		return StatusStopped
	case pregel.StatusDone:
		return StatusFinished
	}
	return StatusRunning
}

func (c *Client) historyOf(ctx context.Context, g *graphadapter.Graph, r HistoryRequest) ([]CheckpointView, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return nil, err
	}
	g = c.graphOr(g, last)
	whole := r.Values || len(r.Subgraph) > 0
	var newest *chain
	past, err := c.pastOf(ctx, g, last, func(ch *chain) bool {
		newest = ch
		return !whole && len(ch.runs[0].in.Lines) < protocol.CarriedLines
	})
	var unreadable *workflows.UnreadableError
	if errors.As(err, &unreadable) && !whole {
		return c.historyAsked(ctx, last, r)
	}
	if err != nil {
		return nil, err
	}
	made, err := past.History(r.Subgraph)
	if err != nil && len(r.Subgraph) > 0 {
		return nil, noSubgraph(last.graph, r.Thread, r.Subgraph, err)
	}
	if err != nil {
		return nil, c.explain(err, last.graph, r.Thread)
	}
	if !whole {
		made = joinLines(made, newest.runs[len(newest.runs)-1].in.Lines)
	}
	return historyView(last.graph, made, r)
}

// historyAsked lets a worker tell the history, at most the last 1,000 checkpoints.
func (c *Client) historyAsked(ctx context.Context, last *lastRun, r HistoryRequest) ([]CheckpointView, error) {
	var lines []protocol.Line
	if err := c.query(ctx, last, protocol.QueryHistory, &lines); err != nil {
		return nil, err
	}
	return historyView(last.graph, joinLines(nil, lines), r)
}

// joinLines adds the checkpoints of earlier runs, as they were noted, to those that were replayed, newest first.
func joinLines(replayed []past.Checkpoint, earlier []protocol.Line) []past.Checkpoint {
	out := make([]past.Checkpoint, 0, len(replayed)+len(earlier))
	noted := map[string]bool{}
	for _, l := range earlier {
		noted[l.Checkpoint] = true
	}
	for _, c := range replayed {
		if !noted[c.Checkpoint] { // a run's first is often its predecessor's last
			out = append(out, c)
		}
	}
	for _, l := range slices.Backward(earlier) {
		next := l.Next
		if next == nil {
			next = []string{}
		}
		out = append(out, past.Checkpoint{Ran: l.Ran, Wrote: l.Wrote, When: madeAt(l.At), Snapshot: &pregel.Snapshot{
			Checkpoint: l.Checkpoint, Parent: l.Parent, Source: l.Source, Step: l.Step, Next: next}})
	}
	return out
}

func reducersOf(g *graphadapter.Graph) map[string]pregel.Reducer {
	if g == nil {
		return nil
	}
	return g.AllReducers()
}
