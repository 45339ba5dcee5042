package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"superstep.dev"
)

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
	temporal, err := dial(ctx, args[0])
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
