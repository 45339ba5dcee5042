package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/history"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

func addState(v *thread.View, s protocol.State) {
	v.Status, v.Drained, v.Paused = thread.Status(s.Status), s.Drained, s.Paused
	v.Durability, v.Fused = runtime.ModeShown(s.Durability), s.Fused
	v.Step = s.Snapshot.Step + 1 // the superstep after the checkpoint
	v.Questions, v.Waits, v.Kept = runtime.QuestionsOf(s.Questions), runtime.WaitViews(s.Waits, runtime.DueIn(s.Due)), runtime.KeptViews(s.Kept)
	runtime.AddDue(v.Questions, s.Due)
	v.Refused = s.Refused
	for i := range v.Questions {
		runtime.AddPending(v.Questions[i], s.Approvals)
	}
	v.Cancel, v.Budget = runtime.CancelView(s.Cancel), thread.ViewOfBudget(s.Budget)
	v.Effects = effectsOf(s.Ledgers)
	v.Nodes = s.Running
	if s.Failure != nil {
		v.Held, v.Failure, v.Error = true, s.Failure, fmt.Sprintf("thread %s: %v", v.Thread, s.Failure)
	}
	if v.Status == thread.StatusStopped || v.Status == thread.StatusPaused || v.Held {
		v.Nodes = s.Snapshot.Next
	}
	if v.Status != thread.StatusRunning {
		v.Output = runtime.Outputs(s.Output, s.Snapshot.Values)
	}
	for _, q := range append(s.Questions[:len(s.Questions):len(s.Questions)], s.Waits...) {
		if !slices.Contains(v.Nodes, q.Node) {
			v.Nodes = append(v.Nodes, q.Node)
		}
	}
}

func effectsOf(ledgers []pregel.TaskLedger) []thread.EffectView {
	var out []thread.EffectView
	for _, l := range ledgers {
		entries, err := graphadapter.DecodeLedger(l.Ledger)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.Kind == ledger.KindEffect {
				out = append(out, runtime.EffectView(l.Node, e))
			}
		}
	}
	return out
}

// newestEffects are the effects that the run knows of, and in their place those that tasks under way know more of.
func newestEffects(known, underWay []thread.EffectView) []thread.EffectView {
	for _, e := range underWay {
		at := slices.IndexFunc(known, func(k thread.EffectView) bool { return k.Key == e.Key })
		if at < 0 {
			known = append(known, e)
			continue
		}
		known[at] = e
	}
	return known
}

// effectsUnderWay reads the ledgers that the tasks under way have stored with their heartbeats.
func (c *reader) effectsUnderWay(last *lastRun) []thread.EffectView {
	var out []thread.EffectView
	for _, a := range last.described.GetPendingActivities() {
		if a.GetActivityType().GetName() == segment.SegmentActivity {
			continue
		}
		kept := c.progressOf(a)
		_, node, _ := strings.Cut(a.GetActivityType().GetName(), ".")
		for _, key := range slices.Sorted(maps.Keys(kept.Tasks)) {
			out = append(out, effectsOf([]pregel.TaskLedger{{Node: node, Ledger: kept.Tasks[key]}})...)
		}
	}
	return out
}

// addOpen adds what a worker says of an open run, and, when none answers, what the run's history tells.
func (c *reader) addOpen(ctx context.Context, last *lastRun, v *thread.View) error {
	state, err := c.stateAsked(ctx, last)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, thread.ErrBadInput) {
		return err // what is stored cannot be read here
	}
	large := errors.Is(err, errTooLarge)
	if err != nil && !large && v.Problem == "" {
		v.Problem = problemOf(err)
	}
	if unanswered(err) {
		state, err = c.stateTold(ctx, last)
	}
	if err != nil { // Problem says so; what the server's index has is known
		listed := c.listed(last.described.GetWorkflowExecutionInfo())
		v.Status, v.Nodes, v.Paused, v.Held = listed.Status, listed.Nodes, listed.Paused, listed.Held
		v.Attempts = attempts(c, last)
		return nil
	}
	if large {
		state = c.completed(ctx, last, state)
	}
	c.addTo(v, last, state)
	return nil
}

// addTo adds what an open run says of itself, and what its tasks under way have stored.
func (c *reader) addTo(v *thread.View, last *lastRun, state protocol.State) {
	addState(v, state)
	v.Attempts = attempts(c, last)
	v.Effects = newestEffects(v.Effects, c.effectsUnderWay(last))
	if v.Cancel != nil {
		v.Cancel.Waits = c.settling(last)
	}
	addHeldUp(v, last)
}

// addHeldUp says which activities, or that the whole run, an operator has paused with Temporal's own tools: nothing goes on with them
// until they are unpaused there.
func addHeldUp(v *thread.View, last *lastRun) {
	var held []string
	for _, a := range last.described.GetPendingActivities() {
		if !a.GetPaused() {
			continue
		}
		_, node, _ := strings.Cut(a.GetActivityType().GetName(), ".")
		if by := a.GetPauseInfo().GetManual(); by != nil {
			node += byAndWhy(by.GetIdentity(), by.GetReason())
		}
		held = append(held, node)
	}
	switch {
	case v.Problem != "":
	case last.status == enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		info := last.described.GetWorkflowExtendedInfo().GetPauseInfo()
		v.Problem = "an operator has paused the workflow of the run" + byAndWhy(info.GetIdentity(), info.GetReason()) +
			": it goes on when it is unpaused, as with temporal workflow unpause"
	case len(held) > 0:
		v.Problem = "an operator has paused the activity of " + strings.Join(held, ", ") +
			": it goes on when it is unpaused, as with temporal activity unpause"
	}
}

// byAndWhy is who paused something, and why, as far as that is known.
func byAndWhy(by, why string) string {
	text := ""
	if by != "" {
		text += " by " + clip.Line(by)
	}
	if why != "" {
		text += " (" + clip.Line(why) + ")"
	}
	return text
}

// attempts are the tasks under way that are not at their first attempt.
func attempts(c *reader, last *lastRun) []thread.AttemptView {
	var out []thread.AttemptView
	for _, a := range history.Attempts(c.cfg.DataConverter, last.described.GetPendingActivities()) {
		if a.Number > 1 && a.Node != "" {
			out = append(out, thread.AttemptView{Node: a.Node, Step: a.Step, Attempt: a.Number, Error: a.Failed, RetryAt: a.RetryAt})
		}
	}
	return out
}

// problemOf is what an error says on the screen of a thread, without the command that shows that screen again.
func problemOf(err error) string {
	var known *thread.Error
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
func (c *reader) completed(ctx context.Context, last *lastRun, told protocol.State) protocol.State {
	var state protocol.State
	if c.query(ctx, last, protocol.QueryOutline, &state) != nil {
		return told
	}
	shown := func(open []pregel.OpenQuestion, all []pregel.OpenQuestion) []pregel.OpenQuestion {
		return slices.DeleteFunc(all, func(q pregel.OpenQuestion) bool { return len(runtime.Matching(open, q.ID)) == 0 })
	}
	state.Questions, state.Waits = shown(state.Questions, told.Questions), shown(state.Waits, told.Waits)
	state.Snapshot, state.Ledgers, state.Running = told.Snapshot, told.Ledgers, told.Running
	return state
}

// stateAsked asks a worker, not for long.
func (c *reader) stateAsked(ctx context.Context, last *lastRun) (state protocol.State, err error) {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err = c.somebodyPolls(probe, last.graph, last.queue); err == nil {
		err = c.query(probe, last, protocol.QueryState, &state)
	}
	return state, err
}

// stateTold replays an open run in this process. It fails when the graph has reducers that are not here.
func (c *reader) stateTold(ctx context.Context, last *lastRun) (state protocol.State, err error) {
	past, _, err := c.pastOf(ctx, c.graphOr(nil, last), last, func(*chain) bool { return true })
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
		Questions: runtime.ForPeople(open), Waits: runtime.ForEvents(open), Ledgers: program.Ledgers(thread), Budget: thread.Meter()}
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
