package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/thread"
)

const (
	answerRounds = 100
	barAnswer    = 30 // ms
	// barAnswerSteps is the same bar on a machine of any speed: where it was set, one step of a hand-written workflow takes
	// 5.0 ms.
	barAnswerSteps = 6
	answerQueue    = "bench-answer"
)

// answerState is what the graph of the measurement has.
type answerState struct {
	Note superstep.Value[string] `json:"note"`
}

// payment is what is asked.
var payment = approval.Action{Tool: "pay", Summary: "Pay 250.00", Params: json.RawMessage(`{"amount":25000}`)}

// answerGraph has a node that needs an approval, and says when it starts: a node that is approved runs for the first time.
func answerGraph(started chan<- time.Time) *superstep.Graph[answerState] {
	g := superstep.NewStateGraph[answerState]("answer")
	g.AddNode("pay", func(_ context.Context, s answerState) (answerState, error) {
		started <- time.Now()
		return s, nil
	}, superstep.WithApproval(func(answerState) (approval.Action, bool) { return payment, true }))
	g.AddEdge(superstep.Start, "pay")
	return g.MustCompile()
}

// withinGraph asks from within a node, which runs again with the answer, and says when the node behind it starts.
func withinGraph(name string, started chan<- time.Time, mode ...superstep.CompileOption) *superstep.Graph[answerState] {
	g := superstep.NewStateGraph[answerState](name)
	g.AddNode("ask", func(ctx context.Context, s answerState) (answerState, error) {
		_, err := superstep.Approve(ctx, payment)
		return s, err
	})
	g.AddNode("next", func(_ context.Context, s answerState) (answerState, error) {
		started <- time.Now()
		return s, nil
	})
	g.AddEdge(superstep.Start, "ask")
	g.AddEdge("ask", "next")
	return g.MustCompile(mode...)
}

// answer measures how long a person's approval takes to have its effect: signed by the client, verified by the worker.
func answer(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.StartServer(ctx, false)
	if err != nil {
		return nil, err
	}
	temporal, err := testbed.Dial(ctx, s.Address)
	if err != nil {
		return nil, err
	}
	defer temporal.Close()
	a := &answers{temporal: temporal, started: make(chan time.Time, 1)}
	stop, err := a.serve(ctx, temporal)
	if err != nil {
		return nil, err
	}
	err = a.alternate(ctx, b.repeat(answerRounds))
	if err := errors.Join(err, stop(), s.Process.Stop()); err != nil {
		return nil, err
	}
	return a.figures(), nil
}

// alternate answers all sides in turn, after one answer of each that finds no cache and no connection warm.
func (a *answers) alternate(ctx context.Context, rounds int) error {
	for round := range rounds + 1 {
		id := fmt.Sprint(round)
		for _, side := range []struct {
			trip func() (time.Duration, error)
			out  *testbed.Sample
		}{
			{func() (time.Duration, error) { return a.trip(ctx, "answer", id) }, &a.toNode},
			{func() (time.Duration, error) { return a.trip(ctx, "within", id) }, &a.toNext},
			{func() (time.Duration, error) { return a.trip(ctx, "fused", id) }, &a.toNextFused},
			{func() (time.Duration, error) { return a.trip(ctx, "async", id) }, &a.toNextAsync},
			{func() (time.Duration, error) { return a.plainTrip(ctx, "plain-"+id, 1) }, &a.plainNode},
			{func() (time.Duration, error) { return a.plainTrip(ctx, "plain-next-"+id, 2) }, &a.plainNext},
			{func() (time.Duration, error) { return a.plainStep(ctx, "plain-steps-"+id) }, &a.plainSteps},
		} {
			took, err := side.trip()
			if err != nil {
				return err
			}
			if round > 0 {
				*side.out = append(*side.out, testbed.Milliseconds(took))
			}
		}
	}
	return nil
}

func (a *answers) figures() []figure {
	p95 := func(s testbed.Sample) string { return fmt.Sprintf("95th percentile %.3g ms", s.Percentile(95)) }
	byHand := func(name, what string, ours, plain testbed.Sample) figure {
		ratio := ours.Over(plain)
		return figure{Name: name, Compares: "that time / a workflow by hand that is told by update, and starts its " + what + " activity",
			Value: ratio.Median(), Unit: "x", Rounds: ratio, Notes: []string{fmt.Sprintf("by hand %.3g ms", plain.Median())}}
	}
	timed := func(name, what string, took testbed.Sample) []figure {
		steps := took.Over(a.plainSteps)
		return []figure{
			{Name: name, Compares: what, Value: took.Median(), Unit: "ms", Bar: barAnswer, Rounds: took, Notes: []string{p95(took)}},
			{Name: name + " in steps", Compares: "that time / one step of a workflow by hand", Value: steps.Median(), Unit: "x",
				Bar: barAnswerSteps, Rounds: steps, Notes: []string{fmt.Sprintf("by hand %.3g ms a step", a.plainSteps.Median())}},
		}
	}
	return slices.Concat(
		timed("answer", "from an approval with a token to the start of the node that was approved", a.toNode),
		[]figure{byHand("answer by hand", "first", a.toNode, a.plainNode)},
		timed("within", "from an approval asked within a node, which runs again, to the start of the node behind it", a.toNext),
		[]figure{byHand("within by hand", "second", a.toNext, a.plainNext)},
		timed("within fused", "the same with supersteps in one activity, each stored before the next", a.toNextFused),
		timed("within async", "the same in the durability mode async", a.toNextAsync),
	)
}

// answers are the sides of the measurement.
type answers struct {
	temporal client.Client
	client   *superstep.Client
	signer   *token.Signer
	// started is told when what is waited for starts.
	started                              chan time.Time
	toNode, toNext, plainNode, plainNext testbed.Sample
	toNextFused, toNextAsync, plainSteps testbed.Sample
}

func (a *answers) graphs() []superstep.Runnable {
	return []superstep.Runnable{
		answerGraph(a.started),
		withinGraph("within", a.started),
		withinGraph("fused", a.started, superstep.WithFused()),
		withinGraph("async", a.started, superstep.WithDurability(superstep.DurabilityAsync)),
	}
}

// serve starts a worker with a gate.
func (a *answers) serve(ctx context.Context, temporal client.Client) (stop func() error, err error) {
	private, _, err := token.Generate(approval.Owner{Issuer: "bench"}, "")
	if err == nil {
		a.signer, err = token.ParseSigner(private)
	}
	if err != nil {
		return nil, err
	}
	keys, err := token.New(a.signer.Key())
	if err != nil {
		return nil, err
	}
	if a.client, err = superstep.NewClient(temporal, superstep.ClientConfig{TaskQueue: answerQueue}); err != nil {
		return nil, err
	}
	w, err := superstep.NewWorker(temporal, superstep.WorkerConfig{Graphs: a.graphs(),
		TaskQueue: answerQueue, Gate: &approval.Gate{Keys: keys}})
	if err != nil {
		return nil, err
	}
	plain := worker.New(temporal, answerPlainQueue, chainWorkerOptions())
	registerAnswerPlain(plain, a.started)
	if err := plain.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		plain.Stop()
		return <-ended
	}, nil
}

// trip runs a thread of a graph to its question, approves it, and returns how long it took until a node started.
func (a *answers) trip(ctx context.Context, graph, id string) (time.Duration, error) {
	threadID := graph + "-" + id
	if _, err := startThread(ctx, a.client, graph, threadID); err != nil {
		return 0, err
	}
	q, err := a.asked(ctx, threadID)
	if err != nil {
		return 0, err
	}
	signed, err := a.signer.Sign(approval.Claims{Thread: threadID, Question: q.ID, Approver: "ann", Digest: q.Approval.Digest,
		ParamsHash: q.Approval.ParamsHash})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	_, err = a.client.Resume(ctx, thread.ResumeRequest{Thread: threadID, Question: q.ID, Value: []byte(`{"verdict":"approve"}`),
		By: "ann", Token: signed})
	if err != nil {
		return 0, err
	}
	select {
	case at := <-a.started:
		return at.Sub(began), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// asked waits for the question.
func (a *answers) asked(ctx context.Context, threadID string) (thread.Question, error) {
	for deadline := time.Now().Add(startPatience); ; {
		view, err := a.client.Show(ctx, threadID)
		if err != nil {
			return thread.Question{}, err
		}
		if len(view.Questions) == 1 && view.Status == thread.StatusWaiting {
			return view.Questions[0], nil
		}
		if time.Now().After(deadline) {
			return thread.Question{}, fmt.Errorf("thread %s does not ask within %v: it is %s", threadID, startPatience, view.Status)
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return thread.Question{}, err
		}
	}
}
