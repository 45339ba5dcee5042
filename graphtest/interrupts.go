package graphtest

import (
	"errors"
	"fmt"
	"testing"

	"superstep.dev"
)

// Interrupts runs the graph on the input, and then again and again with one of its nodes interrupted, in memory and on
// Temporal (see [Runtimes]): each node that ran, those of subgraphs included, stopped by a breakpoint before it and after
// it, by a question that it asks before and after its own work, and by an approval that it needs. Every run is resumed until it finishes, and has to
// end as the one that nobody interrupted: in the same state, with the same writes to the outside, none of them called
// twice.
//
// Effects write to a target that Interrupts keeps for each run. It answers a write with the receipt that the same write
// got in the run that nobody interrupted, so that what follows from a receipt is the same in each run; those are what the
// effect's Do returns, so stand in for a Do that moves money with [Stub]. [Answer] answers the graph's own questions, as
// they come in that run, and in the others those of the same node with the same value. [Except] leaves fields out of
// what is compared, [Modes] runs the graph in other modes than [Sync], and with [Parallel] it is interrupted at several
// places at a time, in runs of their own.
//
// What nodes do without Task and Effect happens again when they run again, and is not looked at, nor are the effects of
// graphs that a node's own code calls: those are called as they are. Caches of nodes are not used. Each run is a thread of its own, so what a node writes must not depend on the thread's id.
//
// Each interruption is a subtest, so -run runs one alone:
//
//	func TestRefundGoesOnFromEverywhere(t *testing.T) {
//		graphtest.Interrupts(t, refund.Graph(pay, 100_00), map[string]any{"order_id": "o-7"}, graphtest.Answer(true))
//	}
func Interrupts(t *testing.T, g superstep.Runnable, input any, opts ...Option) {
	t.Helper()
	in, err := newInterrupts(t, g, input, opts)
	if err != nil {
		t.Fatalf("graphtest: %v", err)
	}
	for _, mode := range in.settings.modesOr(Sync) {
		for _, s := range in.stops {
			t.Run(fmt.Sprintf("%s/%v", mode, s), func(t *testing.T) {
				if in.settings.parallel {
					t.Parallel()
				}
				in.interrupted(t, mode, s)
			})
		}
	}
}

// newInterrupts runs the graph without an interruption, and finds out where it can be interrupted.
func newInterrupts(t testing.TB, g superstep.Runnable, input any, opts []Option) (*interrupts, error) {
	s, err := settingsOf(opts)
	if err == nil {
		err = s.forInterrupts()
	}
	if err != nil {
		return nil, err
	}
	in := &interrupts{graph: g.Adapter(), settings: s}
	if in.input, err = superstep.InputOf(g, input); err != nil {
		return nil, err
	}
	w := in.watch(stop{})
	if in.want, err = in.run(t, superstep.NewMemory(), w, s.modesOr(Sync)[0]); err != nil {
		return nil, fmt.Errorf("the run without an interruption: %w", err)
	}
	in.stops = append([]stop{{}}, w.stops()...)
	return in, nil
}

// interrupted runs the graph with one interruption on both runtimes.
func (in *interrupts) interrupted(t *testing.T, mode Mode, s stop) {
	try := func(t *testing.T, w *watched, rt superstep.Runtime) {
		if err := in.try(t, rt, w, mode); err != nil {
			t.Errorf("%v\n%s", err, alone(t))
		}
	}
	t.Run("memory", func(t *testing.T) { try(t, in.watch(s), superstep.NewMemory()) })
	t.Run("temporal", func(t *testing.T) {
		w := in.watch(s)
		try(t, w, Temporal(t, w.graph))
	})
}

var errNeverInterrupted = errors.New("the run was not interrupted: what it does depends on more than its input and answers")

// try runs a watched graph and says what is not as it should be.
func (in *interrupts) try(t testing.TB, rt superstep.Runtime, w *watched, mode Mode) error {
	got, err := in.run(t, rt, w, mode)
	if err != nil {
		return err
	}
	if got.interrupted == 0 && w.stop.seen() {
		return errNeverInterrupted
	}
	if d := differs(&in.want.ending, &got.ending, in.settings.ignored, "without the interruption"); d != "" {
		return errors.New(d)
	}
	return nil
}
