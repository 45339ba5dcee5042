package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"superstep.dev"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
)

const (
	recoveryName = "recovery"
	// workTime is how long the node works that is killed: several heartbeats, so that kills come before and after.
	workTime = 2 * time.Second
	// recoveryPatience bounds the wait for anything a worker does.
	recoveryPatience = time.Minute
	// crewSize is how many workers there are when one is killed.
	crewSize = 2
)

// notice is a line that a worker process writes: it polls (no Node), or a node starts.
type notice struct {
	PID    int    `json:"pid"`
	Thread string `json:"thread,omitempty"`
	Node   string `json:"node,omitempty"`
	// At is the machine's clock in nanoseconds: all processes share it.
	At int64 `json:"at"`
}

func (n notice) at() time.Time { return time.Unix(0, n.At) }

// notices passes on the lines of one worker.
type notices struct {
	to   chan<- notice
	rest []byte // of a line that has not ended
}

// Write implements io.Writer.
func (n *notices) Write(text []byte) (int, error) {
	n.rest = append(n.rest, text...)
	for {
		line, rest, whole := bytes.Cut(n.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		n.rest = rest
		var one notice
		if json.Unmarshal(line, &one) == nil {
			n.to <- one
		}
	}
}

// crew are the worker processes.
type crew struct {
	set     *processes.Set
	address string
	workers map[int]*processes.Process
	notices chan notice
}

func newCrew(set *processes.Set, address string) *crew {
	return &crew{set: set, address: address, workers: map[int]*processes.Process{}, notices: make(chan notice, 100)}
}

// fill starts the workers that are missing, and returns when they poll.
func (c *crew) fill(ctx context.Context) error {
	for len(c.workers) < crewSize {
		p, err := c.start(ctx)
		if err != nil {
			return err
		}
		polls := func(n notice) bool { return n.PID == p.PID() && n.Node == "" }
		if _, err := c.next(ctx, polls); err != nil {
			return fmt.Errorf("the worker does not poll: %w", err)
		}
	}
	return nil
}

// start starts this very program as a worker.
func (c *crew) start(ctx context.Context) (*processes.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := c.set.Start(ctx, processes.Command{
		Name: "worker", Path: self, Args: []string{workerCommand, c.address}, Output: &notices{to: c.notices},
	})
	if err == nil {
		c.workers[p.PID()] = p
	}
	return p, err
}

// await returns the next start of a thread's node.
func (c *crew) await(ctx context.Context, thread, node string) (notice, error) {
	n, err := c.next(ctx, func(n notice) bool { return n.Thread == thread && n.Node == node })
	if err != nil {
		err = fmt.Errorf("node %s of thread %s did not start: %w", node, thread, err)
	}
	return n, err
}

// next returns the next notice of interest and drops those before it.
func (c *crew) next(ctx context.Context, wanted func(notice) bool) (notice, error) {
	late := time.After(recoveryPatience)
	for {
		select {
		case n := <-c.notices:
			if wanted(n) {
				return n, nil
			}
		case <-late:
			return notice{}, fmt.Errorf("nothing happened for %v", recoveryPatience)
		case <-ctx.Done():
			return notice{}, context.Cause(ctx)
		}
	}
}

// kill ends a worker with SIGKILL and returns when.
func (c *crew) kill(pid int) (time.Time, error) {
	p, ok := c.workers[pid]
	if !ok {
		return time.Time{}, errors.New("the node ran on a worker that was killed before")
	}
	delete(c.workers, pid)
	at := time.Now()
	return at, p.Kill()
}

// end kills every worker that is left.
func (c *crew) end() error {
	var failed []error
	for pid, p := range c.workers {
		failed = append(failed, p.Kill())
		delete(c.workers, pid)
	}
	return errors.Join(failed...)
}

// workerCommand makes this program a worker: it is how the recovery measurement starts processes to kill.
const workerCommand = "recovery-worker"

// The graph's nodes: one that takes its time, and one that shows that the next superstep began.
const (
	workNode = "work"
	nextNode = "next"
)

type recoveryState struct {
	Note superstep.Value[string] `json:"note"`
}

// serveRecovery serves the graph whose workers are killed, and returns the exit code.
func serveRecovery(args []string) int {
	if len(args) != 1 {
		fmt.Fprintf(os.Stderr, "usage: bench %s <host:port>\n", workerCommand)
		return exitBroken
	}
	ctx := context.Background()
	temporal, err := testbed.Dial(ctx, args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench worker:", err)
		return exitBroken
	}
	defer temporal.Close()
	w, err := superstep.NewWorker(temporal, superstep.WorkerConfig{
		Graphs: []superstep.Runnable{recoveryGraph()}, OnReady: func() { tell(notice{}) },
	})
	if err == nil {
		err = w.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench worker:", err)
		return exitBroken
	}
	return 0
}

func recoveryGraph() *superstep.Graph[recoveryState] {
	g := superstep.NewStateGraph[recoveryState](recoveryName)
	g.AddNode(workNode, func(ctx context.Context, s recoveryState) (recoveryState, error) {
		tellStart(ctx)
		return s, pause(ctx, workTime)
	})
	g.AddNode(nextNode, func(ctx context.Context, s recoveryState) (recoveryState, error) {
		tellStart(ctx)
		return s, nil
	})
	g.AddEdge(superstep.Start, workNode)
	g.AddEdge(workNode, nextNode)
	return g.MustCompile()
}

func tellStart(ctx context.Context) {
	info := superstep.Info(ctx)
	tell(notice{Thread: info.Thread, Node: info.Node})
}

// tell writes one line in one piece, which a kill cannot cut.
func tell(n notice) {
	n.PID, n.At = os.Getpid(), time.Now().UnixNano()
	line, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(append(line, '\n')) // without a reader there is nothing to measure
}
