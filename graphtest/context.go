package graphtest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"superstep.dev"
	"superstep.dev/graphadapter"
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

// Op says what was called of an effect.
type Op string

// What is called of an effect.
const (
	OpDo     Op = "do"
	OpLookup Op = "lookup"
)

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

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		panic("graphtest: the context does not come from graphtest.Context")
	}
	return a
}

// nothing is the state of a graph that only holds one node.
type nothing struct {
	Nothing superstep.Value[bool] `json:"nothing"`
}

// oneNode is a graph of one node and these effects, whose node hands its context out and waits for its end.
func oneNode(graph, node string, effects ...superstep.AnyEffect) (*graphadapter.Graph, error) {
	g := superstep.NewStateGraph[nothing](graph)
	g.AddEffect(effects...)
	g.AddNode(node, func(ctx context.Context, s nothing) (nothing, error) {
		a := attemptOf(ctx)
		a.opened <- ctx
		select {
		case <-a.ending:
		case <-ctx.Done():
		}
		return s, nil
	})
	g.AddEdge(superstep.Start, node)
	compiled, err := g.Compile()
	if err != nil {
		return nil, err
	}
	return compiled.Adapter(), nil
}

// untyped returns an effect without its types, by its name.
func untyped(e superstep.AnyEffect) (map[string]graphadapter.Effect, error) {
	g, err := oneNode("graphtest", "node", e)
	if err != nil {
		return nil, fmt.Errorf("the effect cannot be used: %w", err)
	}
	return g.Effects, nil
}

// stepsLeft is how many supersteps are left to a run of the default limit at its first node.
const stepsLeft = 10_007

// defaults fills in what the test did not say of its task.
func defaults(t testing.TB, i superstep.TaskInfo) superstep.TaskInfo {
	first := func(given, otherwise string) string {
		if given == "" {
			return otherwise
		}
		return given
	}
	i.Graph, i.Node = first(i.Graph, "graphtest"), first(i.Node, "node")
	i.Thread, i.Path = first(i.Thread, t.Name()), first(i.Path, i.Node)
	i.Step, i.Attempt = max(i.Step, 1), max(i.Attempt, 1)
	switch {
	case i.LastStep:
		i.StepsLeft = 1
	case i.StepsLeft == 0:
		i.StepsLeft = stepsLeft
	}
	return i
}
