package graphtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/thread"
)

// server is where the heartbeats of one task are stored, and its clock: the wait before a next attempt passes at once.
type server struct {
	mu   sync.Mutex
	kept graphadapter.Progress
	now  time.Time
}

// activity runs one task as its activity does: execution after execution, until one comes to an end.
func (tr *trial) activity(t *pregel.Task, suspect bool) (pregel.Outcome, error) {
	s := &server{now: time.Now()}
	for number := int32(1); ; number++ {
		w := tr.live()
		outcome, err := executed(w, func() (pregel.Outcome, error) { return tr.execute(w, t, suspect, number, s) })
		var again *host.RetryError
		switch {
		case errors.Is(err, errLost):
		case errors.As(err, &again):
			s.now = s.now.Add(again.After)
		case err != nil:
			return outcome, fmt.Errorf("task %s: %w", t.Key(), err)
		default:
			return outcome, nil
		}
	}
}

// execute is one execution of a task.
func (tr *trial) execute(w *process, t *pregel.Task, suspect bool, number int32, s *server) (out pregel.Outcome, err error) {
	x := w.execution(t.Key())
	x.at("start")
	req := graphadapter.NodeRequest{Graph: tr.graph.Spec.Name, Thread: matrixThread, Context: tr.m.settings.context, Suspect: suspect}
	if req.Task, err = sent(*t); err != nil {
		return out, err
	}
	s.mu.Lock()
	kept, err := sent(s.kept)
	s.mu.Unlock()
	if err != nil {
		return out, err
	}
	beats := &heartbeats{server: s, by: w}
	if beats.task, err = host.Open(&req, host.Execution{Attempt: number, Repeated: number > 1}, kept, beats); err != nil {
		return out, err
	}
	if early := beats.task.Early(); early != nil {
		return out, early
	}
	out, err = beats.task.Run(w.ctx, tr.graph, taskrun.Env{
		Journal: x.record(beats.task.Outbox), Outside: tr.outside.serve(x), Use: allowed,
	})
	x.at("end")
	x.finished()
	if err != nil {
		return out, err
	}
	return sent(out)
}

// heartbeats are the host.Server of one execution: a worker that has crashed reaches it no more.
type heartbeats struct {
	*server
	by   *process
	task *host.Task
}

// Send implements host.Server.
func (h *heartbeats) Send(context.Context) error {
	progress := h.task.Progress()
	if !h.by.of.crashes.alive(h.by, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.kept = progress
	}) {
		return graphadapter.ErrFenced
	}
	return nil
}

// Store implements host.Server.
func (h *heartbeats) Store(ctx context.Context) error { return h.Send(ctx) }

// Lost implements host.Server.
func (h *heartbeats) Lost() error { return context.Cause(h.by.ctx) }

// Held implements taskrun.Lease.
func (h *heartbeats) Held() error { return h.Lost() }

// Confirm implements taskrun.Lease.
func (h *heartbeats) Confirm(context.Context) error { return h.Lost() }

// Now implements host.Server.
func (h *heartbeats) Now() time.Time { return h.now }

// Context returns a context as a node gets it, so that a node, or any function that takes a node's context, can be
// called as the ordinary function that it is. Questions, tasks, effects and emitted values work in it as they do in a
// run, with the answers and effects that the options give. It ends with the test.
//
// Everything the node did is told by [Asked], [Emitted] and [Calls]. [Again] runs the node once more, as after a crash
// or an answer.
func Context(t testing.TB, opts ...Option) context.Context {
	t.Helper()
	s, err := settingsOf(opts)
	if err == nil {
		err = s.forContext()
	}
	if err != nil {
		t.Fatalf("graphtest: %v", err)
	}
	k, err := newKit(t, s)
	if err != nil {
		t.Fatalf("graphtest: %v", err)
	}
	ctx, err := k.attempt(k.settings.info.Attempt, false)
	if err != nil {
		t.Fatalf("graphtest: %v", err)
	}
	return ctx
}

// Again ends a [Context] and returns that of the next execution of the same task: what was recorded is remembered,
// answers stay given, and effects that may have been sent are looked up. What the node does with the ended one has no
// effect any more. It panics when ctx is not of a Context.
func Again(ctx context.Context) context.Context {
	before := attemptOf(ctx)
	crashed := before.end()
	number := before.info.Attempt
	if !crashed { // a lost worker is no attempt of the node's
		number++
	}
	next, err := before.kit.attempt(number, true)
	if err != nil {
		before.kit.t.Helper()
		before.kit.t.Fatalf("graphtest: %v", err)
	}
	return next
}

// Asked returns the questions that the node asked with this context, answered or not, in the order in which they were
// asked. It panics when ctx is not of a [Context].
func Asked(ctx context.Context) []thread.Question {
	a := attemptOf(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]thread.Question(nil), a.asked...)
}

// Emitted returns the values that the node emitted with this context. It panics when ctx is not of a [Context].
func Emitted(ctx context.Context) []json.RawMessage {
	a := attemptOf(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]json.RawMessage(nil), a.emitted...)
}

// Call is one call of an effect's Do or Lookup.
type Call[P any] struct {
	Op     Op
	Key    string
	Params P
}

// Calls returns the calls that were made of an effect's Do and Lookup with this context, in their order. It panics
// when ctx is not of a [Context].
func Calls[P, R any](ctx context.Context, e *superstep.Effect[P, R]) []Call[P] {
	a := attemptOf(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Call[P]
	for _, made := range a.calls {
		if made.effect != e.Name {
			continue
		}
		c := Call[P]{Op: made.op, Key: made.key}
		if err := json.Unmarshal(made.params, &c.Params); err != nil {
			a.kit.t.Helper()
			a.kit.t.Fatalf("graphtest: the parameters of effect %q do not decode as %T: %v", e.Name, c.Params, err)
		}
		out = append(out, c)
	}
	return out
}
