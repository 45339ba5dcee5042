package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// doer does a workload once, on that thread, and returns how long its user waits. Of a conversation it is one turn.
type doer func(ctx context.Context, w *workload, thread string, turn int) (time.Duration, error)

// way is one way to do a workload.
type way struct {
	// name has the peer, where it keeps things, how it is used: "superstep sqlite async client".
	name string
	// mode is the durability mode; "" for hand-written programs.
	mode string
	do   doer
	// grow lets a new conversation have as many turns, unmeasured; nil where do does that, turn by turn.
	grow func(ctx context.Context, w *workload, thread string, turns int) error
	// can says which workloads it does.
	can func(*workload) bool
	// floor and langgraph are the names of the ways that it is compared with, of this workload.
	floor, langgraph func(*workload) string
	source           *source
}

// modes are those of Superstep, and the mode of LangGraph that each is compared with.
var modes = []struct{ name, langgraph string }{{"sync", "sync"}, {"fused", "sync"}, {"async", "async"}, {"exit", "exit"}}

// floorOf is the kind of the hand-written program that keeps as much as a mode does; "" for none.
func floorOf(w *workload, mode string) string {
	switch {
	case w.graph == largeGraph: // it is larger than what a history can have
		return ""
	case w.kills:
		return "activities"
	case w.asks && (mode == "sync" || mode == "fused"):
		return "stored"
	case w.talks(), w.asks, w.graph == callsGraph, mode == "async", mode == "exit":
		return "local"
	case mode == "fused":
		return "heartbeats"
	}
	return "activities"
}

// turnByTurn lets a conversation grow by real turns.
func turnByTurn(do doer) func(ctx context.Context, w *workload, thread string, turns int) error {
	return func(ctx context.Context, w *workload, thread string, turns int) error {
		for turn := range turns {
			if _, err := patiently(ctx, do, w, thread, turn+1); err != nil {
				return err
			}
		}
		return nil
	}
}

// patiently bounds the time of one operation, and says at which turn a conversation failed.
func patiently(ctx context.Context, do doer, w *workload, thread string, turn int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	took, err := do(ctx, w, thread, turn)
	if err != nil && w.talks() {
		err = fmt.Errorf("turn %d: %w", turn, err)
	}
	return took, err
}

// noWay compares with nothing.
func noWay(*workload) string { return "" }

// atOnce does something for many threads together, and returns how long all of them took.
func atOnce(n int, thread string, do func(thread string) error) (time.Duration, error) {
	began := time.Now()
	if n == 0 {
		err := do(thread)
		return time.Since(began), err
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(fmt.Sprintf("%s-%d", thread, i)) })
	}
	all.Wait()
	took := time.Since(began)
	failed, first := 0, error(nil)
	for _, err := range errs {
		if err != nil {
			failed++
			first = err
		}
	}
	if failed > 0 {
		return took, fmt.Errorf("%d of %d failed: %w", failed, n, first)
	}
	return took, nil
}

// wrongStep says that somebody did not do the work.
func wrongStep(got, want int) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("it came to %d, not %d", got, want)
}
