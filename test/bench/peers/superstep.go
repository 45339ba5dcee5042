package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"superstep.dev"
	"superstep.dev/thread"
)

// user is a program that starts runs and waits for them, by Superstep's API.
type user struct {
	client *superstep.Client
	graphs map[string]*superstep.Graph[state]
	// begin and answer return when the run rests: where it is, and what it has in its field "step".
	begin  func(ctx context.Context, u *user, r thread.StartRequest, input fields) (thread.Status, int, error)
	answer func(ctx context.Context, u *user, r thread.StartRequest) (thread.Status, int, error)
	// options are those of every invocation by a Thread.
	options []superstep.RunOption
}

// The two APIs: requests of a Client, and a typed Thread; byRuns gives each turn of a conversation a run of its own.
var (
	byClient = user{begin: clientBegin, answer: clientAnswer}
	byThread = user{begin: threadBegin, answer: threadAnswer}
	byRuns   = user{begin: threadBegin, answer: threadAnswer, options: []superstep.RunOption{superstep.WithKeepOpen(-1)}}
)

// do is how a user does a workload in a mode.
func (u *user) do(mode string) doer {
	return func(ctx context.Context, w *workload, id string, turn int) (time.Duration, error) {
		in := w.inputOf(id, turn)
		return atOnce(w.atOnce, id, func(id string) error { return u.once(ctx, w, mode, id, in, turn) })
	}
}

// grow lets a conversation have turns in the mode in which they take the least time: what a thread has in the end is the same.
func (u *user) grow(ctx context.Context, w *workload, thread string, turns int) error {
	return turnByTurn(u.do("exit"))(ctx, w, thread, turns)
}

func (u *user) once(ctx context.Context, w *workload, mode, id string, in fields, turn int) error {
	r := request(w, mode, id)
	status, step, err := u.begin(ctx, u, r, in)
	if err == nil && w.asks {
		if status != thread.StatusWaiting {
			return fmt.Errorf("the run is %s, and should ask", status)
		}
		status, step, err = u.answer(ctx, u, r)
	}
	if err == nil && status != thread.StatusFinished {
		err = fmt.Errorf("the run is %s", status)
	}
	if err == nil {
		err = wrongStep(step, w.step(turn))
	}
	return err
}

// request is what starts a run in a mode, without its input.
func request(w *workload, mode, id string) thread.StartRequest {
	r := thread.StartRequest{Graph: w.graph, Thread: id, Durability: superstep.Durability(mode)}
	if mode == "fused" {
		r.Durability, r.Fused = superstep.DurabilitySync, true
	}
	return r
}

func clientBegin(ctx context.Context, u *user, r thread.StartRequest, input fields) (thread.Status, int, error) {
	var err error
	if r.Input, err = json.Marshal(input); err != nil {
		return "", 0, err
	}
	if _, err = u.client.Start(ctx, r); err != nil {
		return "", 0, err
	}
	return clientWait(ctx, u, r)
}

func clientAnswer(ctx context.Context, u *user, r thread.StartRequest) (thread.Status, int, error) {
	if _, err := u.client.Resume(ctx, thread.ResumeRequest{Thread: r.Thread, Value: json.RawMessage("true")}); err != nil {
		return "", 0, err
	}
	return clientWait(ctx, u, r)
}

func clientWait(ctx context.Context, u *user, r thread.StartRequest) (thread.Status, int, error) {
	view, err := u.client.Wait(ctx, r.Thread)
	if err != nil {
		return "", 0, err
	}
	if view.Error != "" {
		return view.Status, 0, fmt.Errorf("the run is %s: %s", view.Status, view.Error)
	}
	step := 0
	if of, ok := view.Output["step"]; ok {
		err = json.Unmarshal(of, &step)
	}
	return view.Status, step, err
}

func threadBegin(ctx context.Context, u *user, r thread.StartRequest, input fields) (thread.Status, int, error) {
	options := append([]superstep.RunOption{superstep.WithDurability(r.Durability)}, u.options...)
	if r.Fused {
		options = append(options, superstep.WithFused())
	}
	result, err := u.graphs[r.Graph].Thread(u.client, r.Thread).Invoke(ctx, input, options...)
	return result.Status, result.Output.Step.Get(), err
}

func threadAnswer(ctx context.Context, u *user, r thread.StartRequest) (thread.Status, int, error) {
	result, err := u.graphs[r.Graph].Thread(u.client, r.Thread).Resume(ctx, true)
	return result.Status, result.Output.Step.Get(), err
}
