package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"superstep.dev"
)

const (
	// crewSize is how many workers there are when one is killed.
	crewSize = 2
	// killPatience bounds the wait for a node to start.
	killPatience = time.Minute
)

// crew are two workers of one queue. One is killed, and replaced before the next run: the other has to notice by itself.
type crew struct {
	start   func(ctx context.Context, output io.Writer) (*workerProcess, error)
	workers map[int]*workerProcess
	notices chan notice
}

func newCrew(start func(ctx context.Context, output io.Writer) (*workerProcess, error)) *crew {
	return &crew{start: start, workers: map[int]*workerProcess{}, notices: make(chan notice, 100)}
}

// await returns the next start of a thread's node.
func (c *crew) await(ctx context.Context, thread, node string) (notice, error) {
	late := time.After(killPatience)
	for {
		select {
		case n := <-c.notices:
			if n.Thread == thread && n.Node == node {
				return n, nil
			}
		case <-late:
			return notice{}, fmt.Errorf("node %s of thread %s did not start for %v", node, thread, killPatience)
		case <-ctx.Done():
			return notice{}, context.Cause(ctx)
		}
	}
}

// do starts a run, kills its worker at a random moment within the node, and returns how long the next superstep took to start.
func (c *crew) do(ctx context.Context, thread string, start func() error) (time.Duration, error) {
	for len(c.workers) < crewSize {
		p, err := c.start(ctx, &notices{to: c.notices})
		if err != nil {
			return 0, err
		}
		c.workers[p.PID()] = p
	}
	if err := start(); err != nil {
		return 0, err
	}
	first, err := c.await(ctx, thread, "work")
	if err != nil {
		return 0, err
	}
	// Not at the very end: a result that is on its way to the server when the worker dies is no lost node.
	moment := time.Unix(0, first.At).Add(time.Duration(rand.Float64() * 0.95 * float64(slowWork)))
	if err := rest(ctx, time.Until(moment)); err != nil {
		return 0, err
	}
	p, ok := c.workers[first.PID]
	if !ok {
		return 0, fmt.Errorf("the node of thread %s ran on a worker that was killed before", thread)
	}
	delete(c.workers, first.PID)
	killed := time.Now()
	if err := p.Kill(); err != nil {
		return 0, err
	}
	next, err := c.await(ctx, thread, "next")
	return time.Unix(0, next.At).Sub(killed), err
}

// way is one of those whose workers are killed.
func (c *crew) way(name, mode string, t *cluster, start func(ctx context.Context, w *workload, id string) error) *way {
	return &way{
		name: name, mode: mode, langgraph: noWay, source: &t.base,
		can:   func(w *workload) bool { return w.kills },
		floor: func(w *workload) string { return t.floor(w, mode) },
		do: func(ctx context.Context, w *workload, id string, _ int) (time.Duration, error) {
			return c.do(ctx, id, func() error { return start(ctx, w, id) })
		},
	}
}

// killWays are those whose workers are killed: every mode, and the hand-written program.
func (t *cluster) killWays() (out []*way) {
	crewOf := func(queue string) *crew {
		return newCrew(func(ctx context.Context, output io.Writer) (*workerProcess, error) {
			return t.startWorker(ctx, queue, output)
		})
	}
	for _, mode := range modes {
		queue := superstepQueue + "-kill-" + mode.name
		name := "superstep " + t.store + " " + mode.name + " client"
		out = append(out, crewOf(queue).way(name, mode.name, t, func(ctx context.Context, w *workload, id string) error {
			c, err := superstep.NewClient(t.ours, superstep.ClientConfig{TaskQueue: queue, Storage: t.values})
			if err != nil {
				return err
			}
			r := request(w, mode.name, id)
			if r.Input, err = json.Marshal(w.input); err != nil {
				return err
			}
			_, err = c.Start(ctx, r)
			return err
		}))
	}
	queue := floorQueue + "-kill"
	return append(out, crewOf(queue).way("floor "+t.store+" activities", "", t, func(ctx context.Context, w *workload, id string) error {
		options := floorStart(id)
		options.TaskQueue = queue
		_, err := t.byHand.ExecuteWorkflow(ctx, options, slowFlow, w.byHand(w.input))
		return err
	}))
}
