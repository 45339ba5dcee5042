package taskrun

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
	"superstep.dev/internal/stackroom"
)

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
		stackroom.Grow()
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
	var late *graphadapter.StepTimeoutError
	var timeout *graphadapter.TimeoutError
	timedOut := bounded.Err() != nil && errors.As(context.Cause(bounded), &timeout)
	switch {
	case fenced:
		return out, fmt.Errorf("node %q of graph %q, thread %q: %w", t.info.Node, t.info.Graph, t.info.Thread, graphadapter.ErrFenced)
	case yields:
		yielded, err := t.env.Outbox.Yield(entries, true, t.info.Suspect, t.info.Lost)
		yielded.Emitted, yielded.Claim = out.Emitted, t.claim
		return yielded, err
	case errors.As(context.Cause(ctx), &late): // whatever it came back with came too late, also from a node that does not look at its context
		return out, context.Cause(ctx)
	case len(questions) > 0 && (timedOut || !r.left):
		out.Questions, out.Drain = questions, drain
		return out, nil
	case timedOut && r.left:
		left := *timeout
		left.LeftAfter = abandonAfter
		return out, &left
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
			effects = append(effects, e.Slim())
		}
	}
	if len(effects) == 0 && t.task.Ledger == nil {
		return nil, nil
	}
	return jsontext.Encode(graphadapter.StoredLedger{Version: graphadapter.LedgerVersion, Entries: effects}) // also an empty one: it replaces the last
}

// runInline runs the node and its branches on the caller's goroutine. A goroutine for each node would cost more than the
// rest of the attempt. The price: a node that does not return soon after ctx is done, or that ends its goroutine
// (runtime.Goexit), keeps the caller's goroutine. Then next takes the result, and the caller must not: here is false, if
// runInline returns at all. over watches the context that ctx was made from; nil watches ctx itself.
func (t *TaskRun) runInline(ctx context.Context, next resumer, over *deadlineWatch) (r result, here bool) {
	s := &t.inline
	s.begin(ctx, next)
	if over == nil {
		over = watchDeadline(ctx)
		defer over.end()
	}
	over.add(s)
	if ctx.Err() != nil { // a bound of the attempt's own was over before there was a node to wait for
		s.wait()
	}
	came := false
	defer func() {
		over.remove(s)
		panicked := recover()
		switch here = s.back(); {
		case panicked != nil:
			r = result{err: graphadapter.NewPanicError(panicked)}
		case here && !came:
			here = false
			go next.resume(result{err: &graphadapter.PanicError{Message: "the node ended its goroutine (runtime.Goexit)"}})
		}
	}()
	r = t.result(t.in(ctx))
	came = true
	return r, here
}

func init() { runsNode = entryOf((*TaskRun).result) }

// result runs node and branches, or takes what is kept of an equal input.
//
//go:noinline
func (t *TaskRun) result(ctx context.Context) (r result) {
	cache := resultCache{t}
	key, keeps := cache.key()
	if keeps {
		if kept, ok := cache.reuse(ctx, key); ok {
			return result{command: kept.Command, routes: kept.Routes, cached: true}
		}
		ctx = readContext{ctx, t}
	}
	command, err := t.runNode(ctx)
	t.settle()
	if err == nil && t.isYielding() {
		err = graphadapter.ErrYielded
	}
	if err == nil && !t.waits() {
		r.command = command
		r.routes, err = t.route(ctx, command)
	}
	r.err = err
	if keeps && err == nil && !t.waits() {
		cache.store(ctx, key, command, r.routes)
	}
	return r
}
