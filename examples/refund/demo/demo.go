package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"

	"superstep.dev"
	"superstep.dev/examples/refund"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/internal/history"
	"superstep.dev/internal/processes"
	"superstep.dev/internal/processes/stack"
)

const (
	thread = "refund-1042"
	node   = "commit_refund" // whose effect is interrupted

	// workerDrain is how long a worker that is stopped in the middle may finish what it does.
	workerDrain = 2 * time.Second
	// sceneWithin bounds what takes seconds, on a machine that is busy with other things.
	sceneWithin = 2 * time.Minute
)

// demo is the demo once its processes run.
type demo struct {
	*screen
	stack    *stack.Stack
	worker   *processes.Process // the one that will be killed
	temporal client.Client
	runs     *superstep.Client
	tail     history.Tail
	pay      *payments.Client

	order    payments.Order
	question superstep.Question
	runID    string
}

// open starts the processes and connects to them.
func open(ctx context.Context, out *screen, set *processes.Set, programs stack.Programs, dir string, anyPort bool) (*demo, error) {
	s, err := stack.Start(ctx, set, programs, stack.Config{
		Dir: dir, AnyPort: anyPort, Drain: workerDrain,
		Env: []string{"REFUND_LIMIT=" + strconv.Itoa(refund.DefaultLimit)},
	})
	if err != nil {
		return nil, err
	}
	d := &demo{screen: out, stack: s}
	if d.worker, err = s.Worker(ctx); err != nil {
		return nil, err
	}
	if err := d.connect(); err != nil {
		return nil, err
	}
	d.line("devserver %s   web UI %s   payments %s", s.Address, s.WebUI, strings.TrimPrefix(s.Payments, "http://"))
	d.line("worker #1 pid %d", d.worker.PID())
	return d, nil
}

func (d *demo) connect() (err error) {
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	if d.temporal, err = client.Dial(client.Options{HostPort: d.stack.Address, Logger: quiet}); err != nil {
		return fmt.Errorf("connect to the Temporal server: %w", err)
	}
	if d.runs, err = superstep.NewClient(d.temporal, superstep.ClientConfig{}); err != nil {
		return err
	}
	d.tail = history.Tail{Service: d.temporal.WorkflowService(), Namespace: client.DefaultNamespace,
		Converter: converter.GetDefaultDataConverter()}
	d.pay, err = payments.NewClient(d.stack.Payments)
	return err
}

func (d *demo) close() { d.temporal.Close() }

// run plays the scenes and returns the verdict.
func (d *demo) run(ctx context.Context) (verdict string, err error) {
	if err := d.request(ctx); err != nil {
		return "", err
	}
	yes, err := d.answer(ctx)
	if err != nil {
		return "", err
	}
	if !yes {
		return d.declined(ctx)
	}
	c, err := d.crash(ctx)
	if err != nil {
		return "", err
	}
	return d.report(ctx, c)
}

// superstep shows a command line and carries it out. It must exit with want.
func (d *demo) superstep(ctx context.Context, want int, args ...string) error {
	d.line("   $ superstep %s", shellLine(args))
	ctx, cancel := within(ctx, "superstep "+args[0])
	defer cancel()
	code, err := d.stack.Superstep(ctx, d.indented(), args...)
	if err != nil {
		return err
	}
	if code != want {
		return fmt.Errorf("superstep %s exited with %d, not with %d", args[0], code, want)
	}
	return nil
}

// within bounds a scene.
func within(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, sceneWithin, fmt.Errorf("%s: not done after %v", what, sceneWithin))
}

// until calls holds until it does, and waits a little between two calls.
func until(ctx context.Context, holds func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := holds()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || done {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
