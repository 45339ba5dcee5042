package superstep_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"superstep.dev/thread"

	"superstep.dev"
)

func ExampleThread_Resume() {
	type State struct {
		Amount superstep.Value[int64]  `json:"amount"`
		Answer superstep.Value[string] `json:"answer"`
	}
	g := superstep.NewStateGraph[State]("refund")
	g.AddNode("approval", func(ctx context.Context, s State) (State, error) {
		approved, err := superstep.Interrupt[bool](ctx, fmt.Sprintf("Refund %d?", s.Amount.Get()))
		if err != nil {
			return s, err
		}
		s.Answer.Set(map[bool]string{true: "refunded", false: "denied"}[approved])
		return s, nil
	})
	g.AddEdge(superstep.Start, "approval")

	ctx := context.Background()
	thread := g.MustCompile().Thread(superstep.NewMemory(), "refund-7")
	result, err := thread.Invoke(ctx, map[string]int64{"amount": 250})
	fmt.Println(result.Status, string(result.Questions[0].Value), err)

	_, err = thread.Resume(ctx, "sure")
	fmt.Println("a wrong answer is refused:", err != nil)

	result, err = thread.Resume(ctx, true)
	fmt.Println(result.Status, result.Output.Answer, err)
	// Output:
	// waiting "Refund 250?" <nil>
	// a wrong answer is refused: true
	// finished refunded <nil>
}

func ExampleStateGraph_AddSubgraph() {
	type Research struct {
		Topic   superstep.Value[string] `json:"topic"`
		Sources superstep.Value[int]    `json:"sources"` // the subgraph's own
		Summary superstep.Value[string] `json:"summary"`
	}
	type Report struct {
		Topic   superstep.Value[string] `json:"topic"`
		Summary superstep.Value[string] `json:"summary"`
		Text    superstep.Value[string] `json:"text"`
	}
	research := superstep.NewStateGraph[Research]("research")
	research.AddNode("search", func(_ context.Context, s Research) (Research, error) {
		s.Sources.Set(3)
		return s, nil
	})
	research.AddNode("summarise", func(_ context.Context, s Research) (Research, error) {
		s.Summary.Set(fmt.Sprintf("%d sources on %s", s.Sources.Get(), s.Topic.Get()))
		return s, nil
	})
	research.AddEdge(superstep.Start, "search")
	research.AddEdge("search", "summarise")

	report := superstep.NewStateGraph[Report]("report")
	report.AddSubgraph("research", research.MustCompile())
	report.AddNode("write", func(_ context.Context, s Report) (Report, error) {
		s.Text.Set("Report: " + s.Summary.Get())
		return s, nil
	})
	report.AddEdge(superstep.Start, "research")
	report.AddEdge("research", "write")

	result, err := report.MustCompile().Invoke(context.Background(), map[string]string{"topic": "owls"})
	fmt.Println(result.Output.Text, err)
	// Output: Report: 3 sources on owls <nil>
}

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
	th := g.MustCompile().Thread(superstep.NewMemory(), "payout-7") // the same on a Client
	if err := th.Start(ctx, map[string]int64{"amount": 250}); err != nil {
		fmt.Println(err)
	}
	var offset string
	for part, err := range th.Stream(ctx, thread.StreamCustom, thread.StreamUpdates) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %s %s\n", part.Step, part.Mode, part.Data)
		offset = part.Offset
		if part.Mode == thread.StreamCustom {
			break // the reader goes away, the run goes on
		}
	}
	// Later, perhaps elsewhere: exactly the rest.
	for part, err := range th.Stream(ctx, thread.StreamCustom, thread.StreamUpdates, superstep.StreamFrom(offset)) {
		fmt.Printf("%d %s %s %v\n", part.Step, part.Mode, part.Data, err)
	}
	// Output:
	// 1 custom "checking"
	// 1 updates {"check":null} <nil>
	// 2 updates {"pay":{"result":"paid 250"}} <nil>
}

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
	th := g.MustCompile().Thread(superstep.NewMemory(), "payment-7") // the same on a Client
	result, err := th.Invoke(ctx, State{})
	fmt.Println(result.Status, err)

	_, err = th.SendEvent(ctx, "payment.settled", "a lot")
	fmt.Println("one that does not fit is refused:", errors.Is(err, thread.ErrBadInput))

	reply, err := th.SendEvent(ctx, "payment.settled", Settlement{Amount: 250})
	fmt.Println("taken by", reply.Nodes, err)

	result, err = th.Wait(ctx)
	fmt.Println(result.Status, result.Output.Result, err)
	// Output:
	// waiting_event <nil>
	// one that does not fit is refused: true
	// taken by [settle] <nil>
	// finished paid 250 <nil>
}

// A codec hides payloads from the server. With Encoded it hides errors too.
func ExampleEncoded() {
	// In place of compression, a codec of yours encrypts.
	packed := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))
	// Dial with these options, and give their DataConverter and FailureConverter to NewClient and NewWorker.
	o := superstep.Encoded(client.Options{DataConverter: packed})
	failure := o.FailureConverter.ErrorToFailure(temporal.NewApplicationError("card 4111 was declined", "declined"))
	fmt.Println(failure.GetMessage(), failure.GetApplicationFailureInfo().GetType())
	fmt.Println(o.FailureConverter.FailureToError(failure))
	// Output:
	// Encoded failure declined
	// card 4111 was declined (type: declined, retryable: true)
}
