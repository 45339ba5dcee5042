package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

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

// answerGraph asks for an approval, and says when the node that asks starts, and the one behind it.
func answerGraph(again, started chan<- time.Time) *superstep.Graph[answerState] {
	g := superstep.NewStateGraph[answerState]("answer")
	g.AddNode("ask", func(ctx context.Context, s answerState) (answerState, error) {
		again <- time.Now()
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
	a := &answers{temporal: temporal, again: make(chan time.Time, 2), started: make(chan time.Time, 1)}
	stop, err := a.serve(ctx, temporal)
	if err != nil {
		return nil, err
	}
	err = a.alternate(ctx, b.repeat(answerRounds))
	if err := errors.Join(err, stop(), s.process.Stop()); err != nil {
		return nil, err
	}
	return a.figures(), nil
}

// alternate answers both sides in turn, after one answer of each that finds no cache and no connection warm.
func (a *answers) alternate(ctx context.Context, rounds int) error {
	for round := range rounds + 1 {
		thread := fmt.Sprintf("answer-%d", round)
		again, next, err := a.trip(ctx, thread)
		if err != nil {
			return err
		}
		plain, err := a.plainTrip(ctx, "plain-"+thread)
		if err != nil {
			return err
		}
		if round > 0 {
			a.toAsker, a.toNext, a.toPlain = append(a.toAsker, milliseconds(again)), append(a.toNext, milliseconds(next)),
				append(a.toPlain, milliseconds(plain))
		}
	}
	return nil
}

func (a *answers) figures() []figure {
	ratio := a.toNext.over(a.toPlain)
	return []figure{
		{Name: "answer", Compares: "from an approval with a token to the start of the node behind the one that asked",
			Value: a.toNext.median(), Unit: "ms", Bar: barAnswer, Rounds: a.toNext,
			Notes: []string{fmt.Sprintf("95th percentile %.3g ms", a.toNext.percentile(95)),
				fmt.Sprintf("the node that asked runs again after %.3g ms", a.toAsker.median())}},
		{Name: "answer by hand", Compares: "that time / a workflow by hand that is told by update, and starts its second activity",
			Value: ratio.median(), Unit: "x", Rounds: ratio,
			Notes: []string{fmt.Sprintf("by hand %.3g ms", a.toPlain.median())}},
	}
}

// answers are the two sides of the measurement.
type answers struct {
	temporal client.Client
	client   *superstep.Client
	signer   *token.Signer
	// again is told when the node that asks starts, which it does twice, and started when the next one does.
	again, started           chan time.Time
	toAsker, toNext, toPlain sample
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
	w, err := superstep.NewWorker(temporal, superstep.WorkerConfig{Graphs: []superstep.Runnable{answerGraph(a.again, a.started)},
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

// trip runs a thread to its question, approves it, and returns how long it took until the node that asked ran again, and
// until the next one started.
func (a *answers) trip(ctx context.Context, thread string) (again, next time.Duration, err error) {
	if _, err := startThread(ctx, a.client, "answer", thread); err != nil {
		return 0, 0, err
	}
	q, err := a.asked(ctx, thread)
	if err != nil {
		return 0, 0, err
	}
	<-a.again
	signed, err := a.signer.Sign(approval.Claims{Thread: thread, Question: q.ID, Approver: "ann", Digest: q.Approval.Digest,
		ParamsHash: q.Approval.ParamsHash})
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	_, err = a.client.Resume(ctx, superstep.ResumeRequest{Thread: thread, Question: q.ID, Value: []byte(`{"verdict":"approve"}`),
		By: "ann", Token: signed})
	if err != nil {
		return 0, 0, err
	}
	select {
	case at := <-a.started:
		return (<-a.again).Sub(began), at.Sub(began), nil
	case <-ctx.Done():
		return 0, 0, ctx.Err()
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
