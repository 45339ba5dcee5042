package superstep

import (
	"context"
	"errors"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// addOpen adds what a worker says of an open run, and, when none answers, what the run's history tells.
func (c *Client) addOpen(ctx context.Context, last *lastRun, v *ThreadView) error {
	state, err := c.stateAsked(ctx, last)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, ErrBadInput) {
		return err // what is stored cannot be read here
	}
	large := errors.Is(err, errTooLarge)
	if err != nil && !large && v.Problem == "" {
		v.Problem = problemOf(err)
	}
	if errors.Is(err, ErrNoWorker) {
		state, err = c.stateTold(ctx, last)
	}
	if err != nil {
		return nil // Problem says so; what the server knows is known
	}
	if large {
		state = c.completed(ctx, last, state)
	}
	addState(v, state)
	v.Effects = newestEffects(v.Effects, c.effectsUnderWay(last))
	return nil
}

// problemOf is what an error says on the screen of a thread, without the command that shows that screen again.
func problemOf(err error) string {
	var known *Error
	if !errors.As(err, &known) {
		return err.Error()
	}
	told := *known
	if len(told.Command) > 0 && told.Command[0] == "show" {
		told.Do = ""
	}
	told.Command = nil
	return told.Error()
}

// completed is a state that was read from the history, with what only the run itself knows.
func (c *Client) completed(ctx context.Context, last *lastRun, told protocol.State) protocol.State {
	var state protocol.State
	if c.query(ctx, last, protocol.QueryOutline, &state) != nil {
		return told
	}
	shown := func(open []pregel.OpenQuestion, all []pregel.OpenQuestion) []pregel.OpenQuestion {
		return slices.DeleteFunc(all, func(q pregel.OpenQuestion) bool { return len(matching(open, q.ID)) == 0 })
	}
	state.Questions, state.Waits = shown(state.Questions, told.Questions), shown(state.Waits, told.Waits)
	state.Snapshot, state.Ledgers, state.Running = told.Snapshot, told.Ledgers, told.Running
	return state
}

// stateAsked asks a worker, not for long.
func (c *Client) stateAsked(ctx context.Context, last *lastRun) (state protocol.State, err error) {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err = c.somebodyPolls(probe, last.graph, last.queue); err == nil {
		err = c.query(probe, last, protocol.QueryState, &state)
	}
	return state, err
}

// stateTold replays an open run in this process. It fails when the graph has reducers that are not here.
func (c *Client) stateTold(ctx context.Context, last *lastRun) (state protocol.State, err error) {
	past, err := c.pastOf(ctx, c.graphOr(nil, last), last, func(*chain) bool { return true })
	if err != nil {
		return state, err
	}
	program, thread := past.Thread()
	if program == nil {
		return state, errors.New("the run has not begun")
	}
	snapshot, err := program.Now(thread)
	if err != nil {
		return state, err
	}
	in, err := c.inputOf(ctx, last.thread, last.runID)
	if err != nil {
		return state, err
	}
	open := program.OpenQuestions(thread)
	state = protocol.State{Graph: last.graph, Status: string(c.statusNow(last, past)), Snapshot: *snapshot, Output: program.Spec.Output,
		Questions: forPeople(open), Waits: forEvents(open), Ledgers: program.Ledgers(thread)}
	state.Durability, state.Fused = graphadapter.ModeOf(program.Spec, in.Durability, in.Fused)
	if state.Status == protocol.StatusRunning {
		state.Running = snapshot.Next
	}
	if paused := c.pauseOf(last.described.GetWorkflowExecutionInfo()); paused != nil {
		state.Paused = &protocol.Pause{By: paused.By, Reason: paused.Reason, At: paused.At}
		if state.Status != protocol.StatusRunning {
			state.Status = protocol.StatusPaused
		}
	}
	return state, nil
}
