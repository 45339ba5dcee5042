package superstep_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
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

// A subgraph counts how often it was visited, and asks. What it remembers decides what it counts, and what runs again.
func ExampleWithSubgraphMemory() {
	type Desk struct {
		Visits superstep.Sum[int]      `json:"visits"` // the subgraph's own
		Note   superstep.Value[string] `json:"note"`
	}
	type Shop struct {
		Note superstep.Value[string] `json:"note"`
	}
	visit := func(memory superstep.SubgraphMemory) (notes []string, greeted int) {
		desk := superstep.NewStateGraph[Desk]("desk")
		desk.AddNode("greet", func(_ context.Context, s Desk) (Desk, error) {
			greeted++
			s.Visits.Add(1)
			return s, nil
		})
		desk.AddNode("ask", func(ctx context.Context, s Desk) (Desk, error) {
			name, err := superstep.Interrupt[string](ctx, "What is your name?")
			s.Note.Set(fmt.Sprintf("%s, visit %d", name, s.Visits.Get()))
			return s, err
		})
		desk.AddEdge(superstep.Start, "greet")
		desk.AddEdge("greet", "ask")
		shop := superstep.NewStateGraph[Shop]("shop")
		shop.AddSubgraph("desk", desk.MustCompile(), superstep.WithSubgraphMemory(memory))
		shop.AddEdge(superstep.Start, "desk")

		thread := shop.MustCompile().Thread(superstep.NewMemory(), "shop-7")
		for range 2 {
			if _, err := thread.Invoke(context.Background(), Shop{}); err != nil {
				return []string{err.Error()}, greeted
			}
			result, err := thread.Resume(context.Background(), "Ann")
			if err != nil {
				return []string{err.Error()}, greeted
			}
			notes = append(notes, result.Output.Note.Get())
		}
		return notes, greeted
	}
	fmt.Print("for a run: ")
	fmt.Println(visit(superstep.SubgraphMemoryRun))
	fmt.Print("for the thread: ")
	fmt.Println(visit(superstep.SubgraphMemoryThread))
	fmt.Print("not at all: ")
	fmt.Println(visit(superstep.SubgraphMemoryNone))
	// Output:
	// for a run: [Ann, visit 1 Ann, visit 1] 2
	// for the thread: [Ann, visit 1 Ann, visit 2] 2
	// not at all: [Ann, visit 1 Ann, visit 1] 4
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

type trip struct {
	City   superstep.Value[string] `json:"city"`
	Ticket superstep.Value[string] `json:"ticket"`
}

func tripTo(city string) trip {
	var s trip
	s.City.Set(city)
	return s
}

// A node asks before it does something. What people decide is bound to exactly these parameters.
func ExampleApprove() {
	g := superstep.NewStateGraph[trip]("trip")
	g.AddNode("book", func(ctx context.Context, s trip) (trip, error) {
		params, _ := json.Marshal(map[string]string{"city": s.City.Get()})
		decision, err := superstep.Approve(ctx, approval.Action{
			Tool: "flights.book", Summary: "Book a flight to " + s.City.Get(), Params: params, Risk: approval.RiskMedium,
			Approvers: []string{"group:travel"}, Undo: "free of charge for a day",
		})
		if err != nil {
			return s, err
		}
		s.Ticket.Set(string(decision.Verdict) + ": " + decision.Reason)
		return s, nil
	})
	g.AddEdge(superstep.Start, "book")
	thread := g.MustCompile().Thread(superstep.NewMemory(), "trip-7")

	ctx := context.Background()
	waiting, _ := thread.Invoke(ctx, tripTo("Rome"))
	asked := waiting.Questions[0]
	fmt.Println(asked.Approval.Summary, string(asked.Approval.Params))

	result, _ := thread.Reject(ctx, asked.ID, superstep.AskedBy("ann"), superstep.WithReason("take the train"))
	fmt.Println(result.Output.Ticket.Get())
	// Output:
	// Book a flight to Rome {"city":"Rome"}
	// reject: take the train
}

// An effect asks right before its call. Other parameters that an approver proposes are another question, and what is
// approved in the end is what is sent and recorded.
func ExampleEffect_approval() {
	type fare struct {
		City string `json:"city"`
		Most int    `json:"most"`
	}
	buy := &superstep.Effect[fare, string]{
		Name: "flights.buy", Version: "2026-11", Target: superstep.TargetKeyed,
		Do: func(_ context.Context, _ string, f fare) (string, error) {
			return fmt.Sprintf("%s for at most %d", f.City, f.Most), nil
		},
		Approval: func(f fare) (approval.Action, bool) {
			return approval.Action{Summary: fmt.Sprintf("Fly to %s for at most %d", f.City, f.Most)}, f.Most > 100
		},
	}
	g := superstep.NewStateGraph[trip]("trip")
	g.AddEffect(buy)
	g.AddNode("book", func(ctx context.Context, s trip) (trip, error) {
		ticket, err := buy.Call(ctx, fare{s.City.Get(), 900})
		s.Ticket.Set(ticket)
		return s, err
	})
	g.AddEdge(superstep.Start, "book")
	thread := g.MustCompile().Thread(superstep.NewMemory(), "trip-7")

	ctx := context.Background()
	waiting, _ := thread.Invoke(ctx, tripTo("Oslo"))
	fmt.Println(waiting.Questions[0].Approval.Summary)

	waiting, _ = thread.Edit(ctx, "", fare{"Oslo", 300}, superstep.AskedBy("ann"))
	fmt.Println(waiting.Questions[0].Approval.Summary)
	for _, c := range waiting.Questions[0].Approval.Changes {
		fmt.Printf("%s was %s and is %s\n", c.Path, c.Before, c.Now)
	}

	result, _ := thread.Approve(ctx, "", superstep.AskedBy("bob"))
	fmt.Println(result.Output.Ticket.Get())
	// Output:
	// Fly to Oslo for at most 900
	// Fly to Oslo for at most 300 (with other parameters, proposed by ann)
	// /most was 900 and is 300
	// Oslo for at most 300
}

// A node that only runs once people approve it, and a record of who did.
func ExampleWithApproval() {
	g := superstep.NewStateGraph[trip]("trip")
	g.AddNode("book", func(_ context.Context, s trip) (trip, error) {
		s.Ticket.Set("booked")
		return s, nil
	}, superstep.WithApproval(func(s trip) (approval.Action, bool) {
		return approval.Action{Summary: "Fly to " + s.City.Get(), Quorum: 2}, s.City.Get() != "home"
	}))
	g.AddEdge(superstep.Start, "book")
	thread := g.MustCompile().Thread(superstep.NewMemory(), "trip-7")

	ctx := context.Background()
	_, _ = thread.Invoke(ctx, tripTo("Rome"), superstep.WithRequester("rita"))
	waiting, _ := thread.Approve(ctx, "", superstep.AskedBy("ann"))
	asked := waiting.Questions[0].Approval
	fmt.Println(len(asked.Votes), "of", asked.Need, "for", asked.Requester)
	result, _ := thread.Approve(ctx, "", superstep.AskedBy("bob"))
	fmt.Println(result.Output.Ticket.Get())

	entries, _, _ := thread.Audit(ctx)
	for _, e := range entries {
		fmt.Printf("%s %q\n", e.Kind, e.Who)
	}
	// Output:
	// 1 of 2 for rita
	// booked
	// asked ""
	// voted "ann"
	// answered "bob"
	// used "bob"
}

// What is done to a run is in its thread's audit. A worker signs where that ends, so an export is proven wherever it is kept,
// with the worker's public key alone.
func ExampleThread_AuditExport() {
	private, _, _ := token.Generate(approval.Owner{Worker: "till"}, "till-1") // as a rule once, into files
	signer, _ := token.ParseSigner(private)
	rt := superstep.NewMemory(superstep.WithAuditSigner(signer)) // or a Client, of workers with WorkerConfig.AuditSigner
	g := superstep.NewStateGraph[rig.Payment]("audited")
	g.AddNode("ask", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		return s, err
	})
	g.AddEdge(superstep.Start, "ask")
	thread, ctx := g.MustCompile().Thread(rt, "order-1815"), context.Background()
	_, _ = thread.Invoke(ctx, rig.Payment{})
	_ = thread.Pause(ctx, "the books are closed", superstep.AskedBy("ann"))
	_ = thread.Unpause(ctx, superstep.AskedBy("bob"))
	_, _ = thread.Resume(ctx, true, superstep.AskedBy("bob"))

	export, _ := thread.AuditExport(ctx)
	var file bytes.Buffer
	_ = approval.WriteExport(&file, export)

	kept, _ := approval.ReadExport(&file) // years later, somewhere else
	keys, _ := token.New(signer.Key())
	head, err := kept.Verify(keys, 1)
	fmt.Println(head.Thread, head.Count, head.Worker, err)
	for _, e := range kept.Entries {
		fmt.Println(e.Seq, e.Kind, "by", e.Claimed)
	}
	kept.Entries[0].Claimed = "bob"
	_, err = kept.Verify(keys, 1)
	fmt.Println(err != nil)
	// Output:
	// order-1815 3 till <nil>
	// 1 paused by ann
	// 2 unpaused by bob
	// 3 answered by bob
	// true
}
