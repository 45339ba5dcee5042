package graphtest_test

import (
	"context"
	"fmt"
	"testing"

	"superstep.dev"
	"superstep.dev/graphtest"
)

type Refund struct {
	Order  string `json:"order"`
	Amount int64  `json:"amount"`
}

type State struct {
	Order   superstep.Value[string] `json:"order"`
	Amount  superstep.Value[int64]  `json:"amount"`
	Receipt superstep.Value[string] `json:"receipt"`
}

// refund is the effect of the graph under test; its own Do would move money.
var refund = &superstep.Effect[Refund, string]{
	Name: "payments.refund", Target: superstep.TargetKeyed,
	Do: func(context.Context, string, Refund) (string, error) { panic("this moves money") },
	Lookup: func(context.Context, string, Refund) (superstep.Finding[string], error) {
		panic("this asks the bank")
	},
}

// approve is a node that asks.
func approve(ctx context.Context, s State) (State, error) {
	yes, err := superstep.Interrupt[bool](ctx, fmt.Sprintf("Refund %d to order %s?", s.Amount.Get(), s.Order.Get()))
	if err != nil {
		return s, err
	}
	if !yes {
		s.Amount.Set(0)
	}
	return s, superstep.Emit(ctx, map[string]bool{"approved": yes})
}

// pay is a node that writes to the outside.
func pay(ctx context.Context, s State) (State, error) {
	receipt, err := refund.Call(ctx, Refund{s.Order.Get(), s.Amount.Get()})
	if err != nil {
		return s, err
	}
	s.Receipt.Set(receipt)
	return s, nil
}

func order() (s State) {
	s.Order.Set("o-7")
	s.Amount.Set(250)
	return s
}

// t stands for the test that an example cannot have.
var t = inExample{}

type inExample struct{ testing.TB }

func (inExample) Helper()                  {}
func (inExample) Name() string             { return "TestRefund" }
func (inExample) Context() context.Context { return context.Background() }
func (inExample) Cleanup(func())           {}
func (inExample) Fatalf(f string, a ...any) {
	panic(fmt.Sprintf(f, a...))
}

func ExampleContext() {
	ctx := graphtest.Context(t, graphtest.Answer(true))
	_, err := approve(ctx, order())

	fmt.Println(err)
	fmt.Printf("asked   %s\n", graphtest.Asked(ctx)[0].Value)
	fmt.Printf("emitted %s\n", graphtest.Emitted(ctx))
	// Output:
	// <nil>
	// asked   "Refund 250 to order o-7?"
	// emitted [{"approved":true}]
}

func ExampleAnswer() {
	// No answer yet: the node waits.
	ctx := graphtest.Context(t)
	_, err := approve(ctx, order())
	fmt.Println(err)

	ctx = graphtest.Context(t, graphtest.Answer(false))
	s, err := approve(ctx, order())
	fmt.Println(s.Amount, err)

	// An answer of another type than the node asked for.
	ctx = graphtest.Context(t, graphtest.Answer("maybe"))
	_, err = approve(ctx, order())
	fmt.Println(err != nil)
	// Output:
	// superstep: the task waits for an answer
	// 0 <nil>
	// true
}

func ExampleStub() {
	ctx := graphtest.Context(t, graphtest.Stub(refund, func(_ context.Context, key string, r Refund) (string, error) {
		return fmt.Sprintf("receipt of %d for %s", r.Amount, r.Order), nil
	}))
	s, err := pay(ctx, order())

	fmt.Println(s.Receipt, err)
	for _, call := range graphtest.Calls(ctx, refund) {
		fmt.Println(call.Op, call.Params)
	}
	// Output:
	// receipt of 250 for o-7 <nil>
	// do {o-7 250}
}

func ExampleCrashAfterSend() {
	sent := 0
	bank := func(context.Context, string, Refund) (string, error) {
		sent++
		return "rf-88", nil
	}
	ctx := graphtest.Context(t, graphtest.Stub(refund, bank), graphtest.CrashAfterSend(refund))

	// The worker dies with the money on its way: nobody has the receipt.
	_, err := pay(ctx, order())
	fmt.Println(err != nil, len(graphtest.Calls(ctx, refund)))

	// The next one asks the bank first, and does not pay again.
	ctx = graphtest.Again(ctx)
	s, err := pay(ctx, order())
	fmt.Println(s.Receipt, err, graphtest.Calls(ctx, refund)[0].Op)
	fmt.Println("sent", sent)
	// Output:
	// true 1
	// rf-88 <nil> lookup
	// sent 1
}

// A crash at every point of a run: none of them pays twice, and each run ends as the one without a crash.
func ExampleMatrix() {
	test := func(t *testing.T) {
		stub := graphtest.Stub(refund, func(_ context.Context, key string, r Refund) (string, error) {
			return fmt.Sprintf("receipt of %d for %s", r.Amount, r.Order), nil
		})
		graphtest.Matrix(t, refunds(), order(), graphtest.Answer(true), stub)
	}
	fmt.Println(passes(test))
	// Output: true
}

// refunds asks, and then pays.
func refunds() *superstep.Graph[State] {
	g := superstep.NewStateGraph[State]("refunds")
	g.AddEffect(refund)
	g.AddNode("approve", approve)
	g.AddNode("pay", pay)
	g.AddEdge(superstep.Start, "approve")
	g.AddEdge("approve", "pay")
	return g.MustCompile()
}

// passes runs a test inside an example.
func passes(test func(*testing.T)) bool {
	all := func(string, string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: "TestRefunds", F: test}})
}
