package main

import (
	"context"
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/conformance/trace"
)

// inMode is the in-process engine that runs in one mode, whatever it is asked for.
type inMode struct {
	memoryEngine
	mode graphadapter.Durability
}

type threadsInMode struct {
	threads
	mode graphadapter.Durability
}

func (e inMode) open(ctx context.Context, g *graph) (threads, error) {
	opened, err := e.memoryEngine.open(ctx, g)
	return threadsInMode{opened, e.mode}, err
}

func (m threadsInMode) run(ctx context.Context, thread string, in pregel.Input, o graphadapter.RunOptions, rec *recorder) error {
	o.Durability = m.mode
	return m.threads.run(ctx, thread, in, o, rec)
}

// TestExitIsJudged: an engine that keeps more or less than exit does fails, and only cases about checkpoints that exit
// does not keep are marked.
func TestExitIsJudged(t *testing.T) {
	for _, c := range []struct {
		name  string
		e     engine
		cut   bool
		fails string
	}{
		{"chain", memoryEngine{}, true, ""},
		{"chain", inMode{mode: graphadapter.DurabilitySync}, true, "expect[1].history"},
		{"two-turns", memoryEngine{}, true, ""},
		{"replay-from-checkpoint", memoryEngine{}, true, ""},
		{"replay-from-checkpoint", inMode{mode: graphadapter.DurabilityExit}, true, "from_checkpoint is"},
		{"recursion-limit-just-enough", memoryEngine{}, false, ""},
	} {
		tr := newTrial(recordedCase(t, c.name), rootName)
		tr.run.durability = modeExit
		v := tr.judge(t.Context(), c.e)
		if v.cut != c.cut || (v.failure == "") != (c.fails == "") || !strings.Contains(v.failure, c.fails) {
			t.Errorf("%s on %T: cut %v, failure %q; want %v and %q", c.name, c.e, v.cut, v.failure, c.cut, c.fails)
		}
	}
}

// TestExitExpects: of a history the lines that are kept stay, and each one's parent is the nearest kept one.
func TestExitExpects(t *testing.T) {
	v := &exitView{shown: map[int][]int{1: {0, 2, 4}}}
	whole := mustDecode(t, `{"history": [{"step": 3, "parent": 1}, {"step": 2, "parent": 3}, {"step": 1, "parent": 3},
		{"step": 0, "parent": 4}, {"step": -1, "parent": null}]}`)
	want := `{"history":[{"parent":2,"step":3},{"parent":2,"step":1},{"parent":null,"step":-1}]}`
	if got := trace.Canonical(v.expected(1, whole)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := trace.Canonical(v.expected(0, whole)); got != trace.Canonical(whole) {
		t.Errorf("another action's result became %s", got)
	}
}
