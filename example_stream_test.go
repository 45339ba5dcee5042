package superstep_test

import (
	"context"
	"fmt"

	"superstep.dev"
)

func ExampleThread_Stream() {
	type State struct {
		Amount superstep.Value[int64]  `json:"amount"`
		Result superstep.Value[string] `json:"result"`
	}
	g := superstep.NewStateGraph[State]("payout")
	g.AddNode("check", func(ctx context.Context, s State) (State, error) {
		return s, superstep.Emit(ctx, "checking") // for StreamCustom
	})
	g.AddNode("pay", func(_ context.Context, s State) (State, error) {
		s.Result.Set(fmt.Sprintf("paid %d", s.Amount.Get()))
		return s, nil
	})
	g.AddEdge(superstep.Start, "check")
	g.AddEdge("check", "pay")

	ctx := context.Background()
	thread := g.MustCompile().Thread(superstep.NewMemory(), "payout-7") // the same on a Client
	if err := thread.Start(ctx, map[string]int64{"amount": 250}); err != nil {
		fmt.Println(err)
	}
	var offset string
	for part, err := range thread.Stream(ctx, superstep.StreamCustom, superstep.StreamUpdates) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %s %s\n", part.Step, part.Mode, part.Data)
		offset = part.Offset
		if part.Mode == superstep.StreamCustom {
			break // the reader goes away, the run goes on
		}
	}
	// Later, perhaps elsewhere: exactly the rest.
	for part, err := range thread.Stream(ctx, superstep.StreamCustom, superstep.StreamUpdates, superstep.StreamFrom(offset)) {
		fmt.Printf("%d %s %s %v\n", part.Step, part.Mode, part.Data, err)
	}
	// Output:
	// 1 custom "checking"
	// 1 updates {"check":null} <nil>
	// 2 updates {"pay":{"result":"paid 250"}} <nil>
}
