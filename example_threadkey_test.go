package superstep_test

import (
	"context"
	"fmt"

	"superstep.dev"
)

// An agent comes back to the same refund in every round. Its business key makes all of them one: also on another branch,
// after a crash, and in a later run of the thread.
func ExampleWithThreadKey() {
	b := &bank{refunds: map[string]Receipt{}, replies: 1}
	refund := &superstep.Effect[Refund, Receipt]{
		Name: "bank.refund", Target: superstep.TargetKeyed, Do: b.refund, Lookup: b.find,
	}
	g := superstep.NewStateGraph[counter]("agent")
	g.AddEffect(refund)
	g.AddNode("act", func(ctx context.Context, s counter) (counter, error) {
		receipt, err := refund.Call(ctx, Refund{Order: "o-7", Amount: 250}, superstep.WithThreadKey("order/o-7"))
		if err != nil {
			return s, err
		}
		s.Log.Append(receipt.ID)
		s.N.Set(s.N.Get() + 1)
		return s, nil
	})
	g.AddEdge(superstep.Start, "act")
	g.AddConditionalEdges("act", func(_ context.Context, s counter) ([]superstep.Target, error) {
		if s.N.Get() < 3 {
			return superstep.To("act"), nil
		}
		return superstep.To(superstep.End), nil
	})

	ctx := context.Background()
	thread := g.MustCompile().Thread(superstep.NewMemory(), "r-7")
	for range 2 {
		result, err := thread.Invoke(ctx, counter{})
		fmt.Println(result.Output.Log.Get(), err)
	}
	fmt.Println("refunds made:", len(b.refunds))
	// Output:
	// [rf-o-7 rf-o-7 rf-o-7] <nil>
	// [rf-o-7 rf-o-7 rf-o-7 rf-o-7] <nil>
	// refunds made: 1
}
