package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
)

const (
	answerRounds = 100
	barAnswer    = 30 // ms
	answerQueue  = "bench-answer"
)

// answerState is what the graph of the measurement has.
type answerState struct {
	Note superstep.Value[string] `json:"note"`
}

// answerGraph asks for an approval, and says when the node behind it starts.
func answerGraph(started chan<- time.Time) *superstep.Graph[answerState] {
	g := superstep.NewStateGraph[answerState]("answer")
	g.AddNode("ask", func(ctx context.Context, s answerState) (answerState, error) {
		_, err := superstep.Approve(ctx, approval.Action{Tool: "pay", Summary: "Pay 250.00", Params: json.RawMessage(`{"amount":25000}`)})
		return s, err
	})
	g.AddNode("next", func(_ context.Context, s answerState) (answerState, error) {
		started <- time.Now()
		return s, nil
	})
	g.AddEdge(superstep.Start, "ask")
	g.AddEdge("ask", "next")
	return g.MustCompile()
}

// answer measures how long a person's approval takes to have its effect: signed by the client, verified by the worker.
func answer(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.startServer(ctx, false)
	if err != nil {
		return nil, err
	}
	temporal, err := dial(ctx, s.address)
	if err != nil {
		return nil, err
	}
	defer temporal.Close()
	a := &answers{started: make(chan time.Time, 1)}
	stop, err := a.serve(ctx, temporal)
	if err != nil {
		return nil, err
	}
	var took sample
	for round := range b.repeat(answerRounds) + 1 {
		one, err := a.trip(ctx, fmt.Sprintf("answer-%d", round))
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		if round > 0 { // the first one finds no cache and no connection warm
			took = append(took, milliseconds(one))
		}
	}
	f := figure{Name: "answer", Compares: "from an approval with a token to the start of the node behind the one that asked",
		Value: took.median(), Unit: "ms", Bar: barAnswer, Rounds: took,
		Notes: []string{fmt.Sprintf("95th percentile %.3g ms", took.percentile(95))}}
	return []figure{f}, errors.Join(stop(), s.process.Stop())
}

// answers are the two sides of the measurement.
type answers struct {
	client  *superstep.Client
	signer  *token.Signer
	started chan time.Time
}

// serve starts a worker with a gate.
func (a *answers) serve(ctx context.Context, temporal client.Client) (stop func() error, err error) {
	private, _, err := token.Generate("")
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
	w, err := superstep.NewWorker(temporal, superstep.WorkerConfig{Graphs: []superstep.Runnable{answerGraph(a.started)},
		TaskQueue: answerQueue, Gate: &approval.Gate{Keys: keys}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// trip runs a thread to its question, approves it, and returns how long it took until the next node started.
func (a *answers) trip(ctx context.Context, thread string) (time.Duration, error) {
	if _, err := startThread(ctx, a.client, "answer", thread); err != nil {
		return 0, err
	}
	q, err := a.asked(ctx, thread)
	if err != nil {
		return 0, err
	}
	signed, err := a.signer.Sign(approval.Claims{Thread: thread, Question: q.ID, Approver: "ann", Digest: q.Approval.Digest,
		ParamsHash: q.Approval.ParamsHash})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	_, err = a.client.Resume(ctx, superstep.ResumeRequest{Thread: thread, Question: q.ID, Value: []byte(`{"verdict":"approve"}`),
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
func (a *answers) asked(ctx context.Context, thread string) (superstep.Question, error) {
	for deadline := time.Now().Add(startPatience); ; {
		view, err := a.client.Show(ctx, thread)
		if err != nil {
			return superstep.Question{}, err
		}
		if len(view.Questions) == 1 && view.Status == superstep.StatusWaiting {
			return view.Questions[0], nil
		}
		if time.Now().After(deadline) {
			return superstep.Question{}, fmt.Errorf("thread %s does not ask within %v: it is %s", thread, startPatience, view.Status)
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return superstep.Question{}, err
		}
	}
}
