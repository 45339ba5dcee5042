package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"superstep.dev/test/bench/testbed"
)

const (
	// tail is how long a server may go on with what an operation has left behind before its costs are read: it belongs to it.
	tail = 100 * time.Millisecond
	// patience bounds one operation.
	patience = 10 * time.Minute
)

// round is what one way took in one round.
type round struct {
	// Milliseconds is the median of the operations of this round.
	Milliseconds float64 `json:"ms"`
	Cost         cost    `json:"cost"`
}

// entrant is a way that does a workload, round after round.
type entrant struct {
	*way
	rounds []round
	failed error // it takes part no more
	// thread and turn are where its conversation stands.
	thread string
	turn   int
}

// race lets ways do a workload in turn, in an order drawn for each round, after one time that does not count. What fails is
// left out from there on.
func race(ctx context.Context, w *workload, ways []*way, rounds int, order *rand.Rand, notes io.Writer) ([]*entrant, error) {
	var all []*entrant
	var ready sync.WaitGroup
	fmt.Fprintf(notes, "%s: %d ways get ready\n", w.name, len(ways))
	for _, one := range ways {
		e := &entrant{way: one}
		if w.turn > 0 {
			e.thread = w.name + "-" + uuid.NewString()
		}
		all = append(all, e)
		ready.Go(func() { e.failed = e.prepare(ctx, w) })
		if w.turn == 0 {
			ready.Wait() // conversations take long to grow, so they do together
		}
	}
	ready.Wait()
	for n := range rounds {
		fmt.Fprintf(notes, "%s: round %d of %d\n", w.name, n+1, rounds)
		for _, i := range order.Perm(len(all)) {
			e := all[i]
			if e.failed != nil {
				continue
			}
			r, err := e.round(ctx, w)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				e.failed = err
				continue
			}
			e.rounds = append(e.rounds, r)
		}
	}
	return all, context.Cause(ctx)
}

// prepare does what is not measured: the turns that a conversation has had, or one operation that fills caches.
func (e *entrant) prepare(ctx context.Context, w *workload) error {
	if w.turns > 0 {
		return nil // of that many nobody sees the first
	}
	if e.turn = max(w.turn-1, 0); e.turn > 0 {
		grow := e.grow
		if grow == nil {
			grow = turnByTurn(e.do)
		}
		if err := grow(ctx, w, e.thread, e.turn); err != nil {
			return err
		}
	}
	_, err := e.once(ctx, w)
	return err
}

// once does the workload once, on the conversation's thread or on a new one, and returns how long it took, or one of its turns.
func (e *entrant) once(ctx context.Context, w *workload) (time.Duration, error) {
	if w.turn == 0 {
		e.thread, e.turn = w.name+"-"+uuid.NewString(), 0
	}
	took := time.Duration(0)
	for range max(w.turns, 1) {
		e.turn++
		d, err := patiently(ctx, e.do, w, e.thread, e.turn)
		if err != nil {
			return 0, err
		}
		took += d
	}
	return took / time.Duration(max(w.turns, 1)), nil
}

func (e *entrant) round(ctx context.Context, w *workload) (r round, err error) {
	grows := "" // a thread that was there before
	if w.turn > 0 {
		grows = e.thread
	}
	before, err := e.source.read(ctx, grows)
	if err != nil {
		return r, err
	}
	var took testbed.Sample
	for range w.ops {
		d, err := e.once(ctx, w)
		if err != nil {
			return r, err
		}
		took = append(took, testbed.Milliseconds(d))
	}
	if err := rest(ctx, tail); err != nil {
		return r, err
	}
	last := e.thread
	switch {
	case w.atOnce > 0:
		last += "-0"
	case w.turns > 0:
		last = "" // its newest run is a part of it
	}
	after, err := e.source.read(ctx, last)
	if err != nil {
		return r, err
	}
	r = round{took.Median(), costOf(before, after, w.ops*max(w.turns, 1))}
	if w.graph == largeGraph {
		slowest, err := longestTask(ctx, e.source.temporal, last)
		r.Cost.LongestTask = testbed.Milliseconds(slowest)
		return r, err
	}
	return r, nil
}
