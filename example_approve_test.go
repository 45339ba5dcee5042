package superstep_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/test/rig"
)

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

	result, _ := thread.Reject(ctx, asked.ID, superstep.AnsweredBy("ann"), superstep.WithReason("take the train"))
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

	waiting, _ = thread.Edit(ctx, "", fare{"Oslo", 300}, superstep.AnsweredBy("ann"))
	fmt.Println(waiting.Questions[0].Approval.Summary)
	for _, c := range waiting.Questions[0].Approval.Changes {
		fmt.Printf("%s was %s and is %s\n", c.Path, c.Before, c.Now)
	}

	result, _ := thread.Approve(ctx, "", superstep.AnsweredBy("bob"))
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
	waiting, _ := thread.Approve(ctx, "", superstep.AnsweredBy("ann"))
	asked := waiting.Questions[0].Approval
	fmt.Println(len(asked.Votes), "of", asked.Need, "for", asked.Requester)
	result, _ := thread.Approve(ctx, "", superstep.AnsweredBy("bob"))
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
