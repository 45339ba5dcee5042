package taskrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// Env is what whoever runs tasks gives to one attempt.
type Env struct {
	// Thread is the thread's id.
	Thread string
	// Context is the run's context value; nil for none.
	Context pregel.Value
	// Attempt counts the attempts that the node's retry policy sees, from 1.
	Attempt int
	// Suspect says that an earlier execution may have acted outside without a trace in the journal.
	Suspect bool
	// Behind is set when the thread goes on behind a run that failed, was cancelled or was terminated: at least that long
	// ago. What a worker of that run was about to call, and what is not in the journal, may still arrive.
	Behind time.Duration
	// Alone says that no other task of the thread can use its thread-wide keys: they are used without a claim.
	Alone bool
	// Outbox keeps the task's memoised calls and effects, and counts its attempts; nil means one in memory that begins with
	// what the task was handed out with.
	Outbox *Outbox
	// Journal stands between the node and the Outbox; nil for nothing.
	Journal Journal
	// Emit is given each emitted value as it comes, in order, one at a time; nil keeps them for the outcome alone.
	Emit func(pregel.Emission)
	// Beat is called when the node says that it makes progress; it may be nil.
	Beat func()
	// Lost says that one of those was lost, and may go on without a trace in the journal.
	Lost bool
	// Lease says for how long the task is this execution's; nil for always.
	Lease Lease
	// Warn is told of what went wrong without harm to the task: a cache that cannot be used, a result
	// that is too large to be remembered. It must not block. Nil logs it.
	Warn func(error)
	// Asked answers questions while the node runs; nil, but in tests of a node, leaves them open.
	Asked Asked
	// Outside stands for what the task's effects reach, but in tests nil.
	Outside *Outside
	// Requester is on whose behalf the run is, "" when nobody said.
	Requester string
	// Use says whether an approval may be acted upon; nil is closed: none may.
	Use graphadapter.UseGate

	outer *TaskRun // the task whose code called the graph
}

// RunAttempt runs one attempt of one task of g, the root graph: the node's function, unless only routes are asked for,
// then the task's branches on its state with its own writes applied. A node with a [CachePolicy] does not run for an
// input whose result is kept. A task with a Failure runs the node's error handler, which has no branches. A task with
// Retry is not for RunAttempt: see [RetryAfter].
//
// With a nil error the outcome is complete: finished, or waiting if the node asked a question, whatever else it
// returned, or given back to be run again with its ledger (Yielded). With an error the outcome carries only Emitted,
// Ledger and Kept. The error is
//   - an [*UnservedError] when this process does not have the node: nothing ran;
//   - [ErrFenced] when another execution took over;
//   - ctx's cause when ctx ended before the node did;
//   - anything else is a failed attempt, which the node's retry policy decides on ([RetryAfter]): the node's own error
//     as it is, a [*PanicError], a [*graphadapter.TimeoutError], or a branch's error.
//
// A node that ignores its context is left behind 5 s after the context is done. It can then no longer record, ask or
// emit, so a call to the outside that it still makes is one that the next execution looks up.
func RunAttempt(ctx context.Context, g *graphadapter.Graph, task *pregel.Task, env Env) (pregel.Outcome, error) {
	t, err := newTaskRun(g, task, &env)
	if err != nil {
		return pregel.Outcome{}, err
	}
	t.reset()
	bounded := t.bound(ctx)
	defer t.unbound()
	done := make(inbox, 1)
	go func() {
		growStack(0)
		if r, here := t.runInline(bounded, done, nil); here {
			done <- r
		}
	}()
	r := <-done
	t.close()
	return t.conclude(ctx, bounded, r)
}

// inbox is a resumer that hands the result to whoever receives from the channel.
type inbox chan result

func (in inbox) resume(r result) { in <- r }

func (t *TaskRun) runNode(ctx context.Context) (command pregel.Command, err error) {
	if t.task.RouteOnly {
		return t.task.Done, nil
	}
	defer graphadapter.Catch(&err)
	if t.task.Failure != nil {
		command, err = t.node.Handle(ctx, t.input(), t.task.Failure)
	} else {
		command, err = t.node.Run(ctx, t.input())
	}
	var toUs *pregel.ParentCommandError
	if errors.As(err, &toUs) && toUs.Command != nil {
		// A graph that the node called sent it to this graph: as if the node had returned it.
		command, err = *toUs.Command, t.checkFromWithin(toUs.Command)
	}
	if err == nil && command.Parent != nil && (len(command.Update) > 0 || len(command.Goto) > 0) {
		err = graphadapter.Permanent(fmt.Errorf("node %q of graph %q returned a command to the parent graph together with its own "+
			"update or goto: return one or the other", t.info.Node, t.info.Graph))
	}
	command.Goto = withArgs(command.Goto)
	return command, err
}

// checkFromWithin refuses a command of a called graph that this graph cannot follow.
func (t *TaskRun) checkFromWithin(c *pregel.Command) error {
	program, err := t.graph.Program()
	if err != nil {
		return err
	}
	if err := program.CheckParentCommand(c); err != nil {
		return graphadapter.Permanent(err)
	}
	return nil
}

func (t *TaskRun) input() graphadapter.Input {
	return graphadapter.Input{State: t.nodeState(), Arg: t.task.Arg}
}

// nodeState is what the node reads. The task's state holds more when the node has branches, which read everything, and
// when an error handler reads less than the node that failed.
func (t *TaskRun) nodeState() graphadapter.State {
	spec, ok := t.graph.NodeSpec(t.task.Node)
	if !ok || spec.Reads == nil || len(t.task.Branches) == 0 && t.task.Failure == nil {
		return t.task.State
	}
	state := make(graphadapter.State, len(spec.Reads))
	for _, channel := range spec.Reads {
		if v, ok := t.task.State[channel]; ok {
			state[channel] = v
		}
	}
	return state
}

// conclude turns the node's result into the attempt's, in the order of what outweighs what.
func (t *TaskRun) conclude(ctx, bounded context.Context, r result) (pregel.Outcome, error) {
	t.mu.Lock()
	fenced, questions, drain, yields := t.fenced, slices.Clone(t.questions), t.drain, t.yielding
	out := pregel.Outcome{Emitted: slices.Clone(t.emitted)}
	t.mu.Unlock()
	entries := t.journal.Entries()
	var err error
	if out.Ledger, err = graphadapter.EncodeCarryOver(entries, graphadapter.CarryOver{Suspect: t.info.Suspect, Lost: t.info.Lost}); err != nil {
		return out, err
	}
	out.Kept = t.kept(entries)
	var timeout *graphadapter.TimeoutError
	timedOut := bounded.Err() != nil && errors.As(context.Cause(bounded), &timeout)
	switch {
	case fenced:
		return out, fmt.Errorf("node %q of graph %q, thread %q: %w", t.info.Node, t.info.Graph, t.info.Thread, graphadapter.ErrFenced)
	case yields:
		yielded, err := t.env.Outbox.Yield(entries, true, t.info.Suspect, t.info.Lost)
		yielded.Emitted, yielded.Claim = out.Emitted, t.claim
		return yielded, err
	case len(questions) > 0 && (timedOut || !r.left):
		out.Questions, out.Drain = questions, drain
		return out, nil
	case timedOut:
		return out, timeout
	case r.err != nil && ctx.Err() != nil:
		return out, context.Cause(ctx)
	case r.err != nil:
		return t.failedWith(out, entries, r.err)
	}
	out.Command, out.Routes, out.Cached, out.Drain = r.command, r.routes, r.cached, drain
	out.Ledger, err = t.lastLedger(entries)
	return out, err
}

// failedWith is the end of an attempt that failed. Its ledger counts when no other attempt follows.
func (t *TaskRun) failedWith(out pregel.Outcome, entries []ledger.Entry, failure error) (_ pregel.Outcome, err error) {
	told := Reported(entries)
	if out.Ledger, err = graphadapter.EncodeCarryOver(told, graphadapter.CarryOver{Suspect: t.info.Suspect}); err != nil {
		return out, errors.Join(failure, err)
	}
	out.Kept = t.kept(told)
	return out, failure
}

// lastLedger is what a finished task leaves: its effects, and what became of approvals. It does not run again, so what it
// remembered is of no more use.
func (t *TaskRun) lastLedger(entries []ledger.Entry) (pregel.Value, error) {
	effects := []ledger.Entry{}
	for _, e := range entries {
		switch {
		case e.Kind == ledger.KindEffect:
			effects = append(effects, e)
		case e.Kind == ledger.KindApproval && e.Approved != nil:
			effects = append(effects, graphadapter.Slim(e))
		}
	}
	if len(effects) == 0 && t.task.Ledger == nil {
		return nil, nil
	}
	return jsontext.Encode(graphadapter.StoredLedger{Version: graphadapter.LedgerVersion, Entries: effects}) // also an empty one: it replaces the last
}
