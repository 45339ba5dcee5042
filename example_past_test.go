package superstep_test

import (
	"context"
	"fmt"

	"superstep.dev"
)

type order struct {
	Amount superstep.Value[int64] `json:"amount"`
	Log    superstep.List[string] `json:"log"`
}

// refunds is a graph that looks up an amount and refunds it.
func refunds(opts ...superstep.CompileOption) *superstep.Graph[order] {
	g := superstep.NewStateGraph[order]("refund")
	g.AddNode("look_up", func(_ context.Context, s order) (order, error) {
		s.Amount.Set(250)
		s.Log.Append("looked up")
		return s, nil
	})
	g.AddNode("refund", func(_ context.Context, s order) (order, error) {
		s.Log.Append(fmt.Sprintf("refunded %d", s.Amount.Get()))
		return s, nil
	})
	g.AddEdge(superstep.Start, "look_up")
	g.AddEdge("look_up", "refund")
	return g.MustCompile(opts...)
}

func ExampleThread_Update() {
	ctx := context.Background()
	thread := refunds(superstep.WithInterruptBefore("refund")).Thread(superstep.NewMemory(), "refund-7")
	result, err := thread.Invoke(ctx, map[string]any{})
	fmt.Println(result.Status, result.Output.Amount, err)

	// Somebody corrects what look_up found; what follows that node is next.
	state, err := thread.Update(ctx, map[string]any{"amount": 200}, superstep.AsNode("look_up"))
	fmt.Println(state.State.Amount, state.Next, err)

	result, err = thread.Invoke(ctx, nil)
	fmt.Println(result.Status, result.Output.Log, err)
	// Output:
	// stopped 250 <nil>
	// 200 [refund] <nil>
	// finished [looked up refunded 200] <nil>
}

func ExampleThread_History() {
	ctx := context.Background()
	thread := refunds().Thread(superstep.NewMemory(), "refund-7")
	if _, err := thread.Invoke(ctx, map[string]any{}); err != nil {
		fmt.Println(err)
	}
	history, err := thread.History(ctx)
	for _, c := range history {
		fmt.Println(c.Step, c.Source, c.Ran, c.Wrote, "next", c.Next)
	}
	fmt.Println(err)

	past, err := thread.State(ctx, superstep.AtCheckpoint(history[1].Checkpoint))
	fmt.Println(past.State.Log, err)
	// Output:
	// 2 loop [refund] [log] next []
	// 1 loop [look_up] [amount log] next [refund]
	// 0 loop [] [] next [look_up]
	// -1 input [] [] next [__start__]
	// <nil>
	// [looked up] <nil>
}

func ExampleThread_Fork() {
	ctx := context.Background()
	rt := superstep.NewMemory()
	g := refunds()
	thread := g.Thread(rt, "refund-7")
	if _, err := thread.Invoke(ctx, map[string]any{}); err != nil {
		fmt.Println(err)
	}
	before, err := thread.History(ctx, superstep.AtStep(1))
	fmt.Println(before[0].Next, err)

	// Run again from there, on a thread of its own: what would have happened?
	other, err := thread.Fork(ctx, before[0].Checkpoint, "what-if")
	if err != nil {
		fmt.Println(err)
	}
	result, err := other.Wait(ctx)
	fmt.Println(other.ID(), result.Output.Log, err)
	// Output:
	// [refund] <nil>
	// what-if [looked up refunded 250] <nil>
}
