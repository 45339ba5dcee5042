package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"superstep.dev"
)

const (
	// crewSize is how many workers there are when one is killed.
	crewSize = 2
	// killPatience bounds the wait for a node to start.
	killPatience = 5 * time.Minute
	// tries is how often a run is begun whose node may have ended before its worker is killed, as on a busy machine.
	tries = 10
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

// await returns the next start of one of these nodes of a thread.
func (c *crew) await(ctx context.Context, thread string, nodes ...string) (notice, error) {
	late := time.After(killPatience)
	for {
		select {
		case n := <-c.notices:
			if n.Thread == thread && slices.Contains(nodes, n.Node) {
				return n, nil
			}
		case <-late:
			return notice{}, fmt.Errorf("node %s of thread %s did not start for %v", strings.Join(nodes, " or "), thread, killPatience)
		case <-ctx.Done():
			return notice{}, context.Cause(ctx)
		}
	}
}

// do starts a run, kills its worker at a random moment within the node, and returns how long the next superstep took to start. A run whose
// node was through before is none to measure: there is another one then.
func (c *crew) do(ctx context.Context, thread string, start func(thread string) error) (time.Duration, error) {
	id := thread
	for n := range tries {
		took, within, err := c.once(ctx, id, start)
		if within || err != nil {
			return took, err
		}
		id = fmt.Sprintf("%s-%d", thread, n+2)
	}
	return 0, fmt.Errorf("%d times the node of thread %s and its like had ended when its worker was killed", tries, thread)
}

// once is do with one run, and reports whether the node was lost.
func (c *crew) once(ctx context.Context, thread string, start func(thread string) error) (took time.Duration, within bool, err error) {
	for len(c.workers) < crewSize {
		p, err := c.start(ctx, &notices{to: c.notices})
		if err != nil {
			return 0, false, err
		}
		c.workers[p.PID()] = p
	}
	if err := start(thread); err != nil {
		return 0, false, err
	}
	first, err := c.await(ctx, thread, "work")
	if err != nil {
		return 0, false, err
	}
	// Not at the very end: a result that is on its way to the server when the worker dies is no lost node.
	moment := time.Unix(0, first.At).Add(time.Duration(rand.Float64() * 0.95 * float64(slowWork)))
	if err := rest(ctx, time.Until(moment)); err != nil {
		return 0, false, err
	}
	p, ok := c.workers[first.PID]
	if !ok {
		return 0, false, fmt.Errorf("the node of thread %s ran on a worker that was killed before", thread)
	}
	delete(c.workers, first.PID)
	killed := time.Now()
	if err := p.Kill(); err != nil {
		return 0, false, err
	}
	again, err := c.await(ctx, thread, "work", "next") // one that was lost begins once more
	if err != nil || again.Node == "next" {
		return 0, false, err
	}
	next, err := c.await(ctx, thread, "next")
	return time.Unix(0, next.At).Sub(killed), true, err
}

// way is one of those whose workers are killed.
func (c *crew) way(name, mode string, t *cluster, start func(ctx context.Context, w *workload, id string) error) *way {
	return &way{
		name: name, mode: mode, langgraph: noWay, source: &t.base,
		can:   func(w *workload) bool { return w.kills },
		floor: func(w *workload) string { return t.floor(w, mode) },
		do: func(ctx context.Context, w *workload, id string, _ int) (time.Duration, error) {
			return c.do(ctx, id, func(id string) error { return start(ctx, w, id) })
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
