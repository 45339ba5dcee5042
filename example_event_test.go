package superstep_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev"
)

func ExampleWaitEvent() {
	type Settlement struct {
		Amount int64 `json:"amount"`
	}
	type State struct {
		Result superstep.Value[string] `json:"result"`
	}
	g := superstep.NewStateGraph[State]("payment")
	g.AddNode("settle", func(ctx context.Context, s State) (State, error) {
		settled, err := superstep.WaitEvent[Settlement](ctx, "payment.settled", 48*time.Hour)
		switch {
		case errors.Is(err, superstep.ErrEventTimeout):
			s.Result.Set("nobody paid")
			return s, nil
		case err != nil: // it has not come yet: the run waits, without a process
			return s, err
		}
		s.Result.Set(fmt.Sprintf("paid %d", settled.Amount))
		return s, nil
	})
	g.AddEdge(superstep.Start, "settle")

	ctx := context.Background()
	thread := g.MustCompile().Thread(superstep.NewMemory(), "payment-7") // the same on a Client
	result, err := thread.Invoke(ctx, State{})
	fmt.Println(result.Status, err)

	_, err = thread.SendEvent(ctx, "payment.settled", "a lot")
	fmt.Println("one that does not fit is refused:", errors.Is(err, superstep.ErrBadInput))

	reply, err := thread.SendEvent(ctx, "payment.settled", Settlement{Amount: 250})
	fmt.Println("taken by", reply.Nodes, err)

	result, err = thread.Wait(ctx)
	fmt.Println(result.Status, result.Output.Result, err)
	// Output:
	// waiting_event <nil>
	// one that does not fit is refused: true
	// taken by [settle] <nil>
	// finished paid 250 <nil>
}
