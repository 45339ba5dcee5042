package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"superstep.dev"
	"superstep.dev/test/bench/testbed"
)

const barRecovery = 4.0 // s

// recovery kills the worker that runs a node, again and again, while a second one is there to go on.
func recovery(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.StartServer(ctx, true)
	if err != nil {
		return nil, err
	}
	temporal, err := testbed.Dial(ctx, s.Address)
	if err != nil {
		return nil, err
	}
	defer temporal.Close()
	c, err := superstep.NewClient(temporal, superstep.ClientConfig{})
	if err != nil {
		return nil, err
	}
	crew := newCrew(b.Processes, s.Address)
	var nodes, steps testbed.Sample
	for i := range b.kills {
		k, err := killOnce(ctx, c, crew, fmt.Sprintf("recovery-%d", i+1))
		if err != nil {
			return nil, fmt.Errorf("kill %d: %w", i+1, err)
		}
		nodes, steps = append(nodes, k.node().Seconds()), append(steps, k.step().Seconds())
	}
	return recoveryFigures(nodes, steps), errors.Join(crew.end(), s.Process.Stop())
}

func recoveryFigures(nodes, steps testbed.Sample) []figure {
	return []figure{
		{
			Name: "recovery", Compares: "kill of a worker inside a node -> the node's next start, p95",
			Value: nodes.Percentile(95), Unit: "s", Bar: barRecovery, Rounds: nodes, Notes: []string{percentiles(nodes)},
		},
		{
			Name: "recovery to superstep", Compares: "kill of a worker inside a node -> the next superstep, less the node's own time, p95",
			Value: steps.Percentile(95), Unit: "s", Rounds: steps, Notes: []string{percentiles(steps)},
		},
	}
}

func percentiles(s testbed.Sample) string {
	return fmt.Sprintf("p50 %.2f   p95 %.2f   max %.2f", s.Median(), s.Percentile(95), s.Max())
}

// kill is one kill and what followed.
type kill struct {
	at, again, next time.Time
}

// node is how long the node stood still.
func (k kill) node() time.Duration { return k.again.Sub(k.at) }

// step is how long the next superstep took to start, without the time that the node itself takes.
func (k kill) step() time.Duration { return k.next.Sub(k.at) - workTime }

// killOnce runs a thread, kills the worker of its first node at a random moment inside it, and watches who goes on.
func killOnce(ctx context.Context, c *superstep.Client, crew *crew, thread string) (kill, error) {
	var k kill
	if err := crew.fill(ctx); err != nil {
		return k, err
	}
	if _, err := startThread(ctx, c, recoveryName, thread); err != nil {
		return k, err
	}
	first, err := crew.await(ctx, thread, workNode)
	if err != nil {
		return k, err
	}
	// Not at the very end: a result that is on its way to the server when the worker dies is no lost node.
	moment := first.at().Add(time.Duration(rand.Float64() * 0.95 * float64(workTime)))
	if err := pause(ctx, time.Until(moment)); err != nil {
		return k, err
	}
	if k.at, err = crew.kill(first.PID); err != nil {
		return k, err
	}
	again, err := crew.await(ctx, thread, workNode)
	if err != nil {
		return k, err
	}
	next, err := crew.await(ctx, thread, nextNode)
	k.again, k.next = again.at(), next.at()
	return k, err
}
