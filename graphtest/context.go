package graphtest

import (
	"context"
	"encoding/json"
	"testing"

	"superstep.dev"
	"superstep.dev/thread"
)

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
