package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/test/processes"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

const (
	// noteEvery is how often people are told how far it is.
	noteEvery = 10 * time.Second
	// standstill is when a thread that gets no further counts as lost.
	standstill = 5 * time.Minute
)

// life is what became of the thread.
type life struct {
	options
	thread    string
	took      time.Duration
	reading   time.Duration // the history and the stream, afterwards
	continues int
	kills     int64
	atOne     int64 // kills at a continue-as-new
	answers   int   // in the thread's last state
	people    people
	broken    []string
}

// soak runs one thread to its end, and looks at it.
func soak(ctx context.Context, set *processes.Set, dir, address string, o options, notes io.Writer) (*life, error) {
	temporal, err := client.DialContext(ctx, client.Options{HostPort: address, Logger: silent{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(o.shorten)},
	}})
	if err != nil {
		return nil, err
	}
	defer temporal.Close()
	queue := fmt.Sprintf("soak-%d", time.Now().UnixNano())
	c, err := superstep.NewClient(temporal, superstep.ClientConfig{TaskQueue: queue})
	if err != nil {
		return nil, err
	}
	l := &life{options: o, thread: queue}
	l.people = people{client: c, thread: l.thread, asked: map[string]bool{}, taken: map[string]string{}}
	crew := &crew{set: set, dir: dir, address: address, queue: queue, every: o.every}
	living, stop := context.WithCancelCause(ctx)
	workers := crew.keep(living, o.workers, stop)
	err = l.live(living, c, crew, stop, notes)
	if err != nil && living.Err() != nil {
		err = context.Cause(living)
	}
	stop(nil)
	workers.Wait()
	l.kills, l.atOne = crew.kills.Load(), crew.continues.Load()
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(notes, "the thread has ended, now its history and its stream are read")
	return l, l.look(ctx, c, temporal)
}

// live starts the thread, and returns when it has ended.
func (l *life) live(ctx context.Context, c *superstep.Client, crew *crew, stop context.CancelCauseFunc, notes io.Writer) error {
	began := time.Now()
	input := fmt.Appendf(nil, `{"at":0,"steps":%d,"every":%d}`, l.supersteps, l.supersteps/l.questions)
	for {
		_, err := c.Start(ctx, thread.StartRequest{Graph: graphName, Thread: l.thread, Input: input, RecursionLimit: l.supersteps + 10})
		if err == nil || errors.Is(err, thread.ErrRunning) { // it got through, its answer did not
			break
		}
		if !passing(err) || time.Since(began) > patience {
			return fmt.Errorf("start the thread: %w", err)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	began = time.Now()
	over := make(chan struct{})
	var watch, all sync.WaitGroup
	watch.Go(func() { l.watch(ctx, c, crew, stop, over, began, notes) })
	for i := range l.options.people {
		all.Go(func() {
			if err := l.people.answer(ctx, fmt.Sprintf("person-%d", i), i); err != nil {
				stop(err)
			}
		})
	}
	all.Wait()
	l.took = time.Since(began)
	close(over)
	watch.Wait()
	return context.Cause(ctx)
}

// watch tells how far the thread is, and gives it up when it stands still.
func (l *life) watch(ctx context.Context, c *superstep.Client, crew *crew, stop context.CancelCauseFunc, over <-chan struct{},
	began time.Time, notes io.Writer,
) {
	last, since := -1, time.Now()
	for {
		select {
		case <-time.After(noteEvery):
		case <-over:
			return
		case <-ctx.Done():
			return
		}
		state, err := c.State(ctx, thread.StateRequest{Thread: l.thread})
		if err == nil && state.Step != last {
			last, since = state.Step, time.Now()
		}
		if time.Since(since) > standstill {
			stop(fmt.Errorf("the thread stands still at superstep %d, %s, for %v (%w)", last, state.Status, standstill, err))
			return
		}
		note := ""
		if err != nil {
			note = ", " + err.Error()
		}
		l.people.mu.Lock()
		asked := len(l.people.asked)
		l.people.mu.Unlock()
		fmt.Fprintf(notes, "%4.0f s: superstep %d of %d, %d of %d questions, %d kills, %d of them at a continue-as-new%s\n",
			time.Since(began).Seconds(), last, l.supersteps, asked, l.questions, crew.kills.Load(), crew.continues.Load(), note)
	}
}

// shorten lowers the bound at which the thread is continued as a new run.
func (o options) shorten(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	start, _ := req.(*workflowservice.StartWorkflowExecutionRequest)
	if both, ok := req.(*workflowservice.ExecuteMultiOperationRequest); ok {
		start = both.GetOperations()[0].GetStartWorkflow()
	}
	if o.events > 0 && start.GetWorkflowType().GetName() == protocol.GraphWorkflow {
		var in protocol.GraphInput
		err := converter.GetDefaultDataConverter().FromPayloads(start.GetInput(), &in)
		if err == nil {
			in.ContinueAt = &protocol.ContinueAt{Events: o.events}
			start.Input, err = converter.GetDefaultDataConverter().ToPayloads(in)
		}
		if err != nil {
			return err
		}
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}
