package pregel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// chosen is a graph with a reducer of the caller's choice: a, then b.
func chosen(t *testing.T, reduce func(pregel.Value, []pregel.Value) (pregel.Value, error)) *pregel.Program {
	t.Helper()
	p, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "g",
		Channels: []pregel.ChannelSpec{{Name: "v", Kind: pregel.KindReduce, Reducer: "own/v1"}, {Name: "w", Kind: pregel.KindLast}},
		Nodes:    []pregel.NodeSpec{{Name: "a"}, {Name: "b"}},
		Edges:    []pregel.Edge{{From: pregel.Start, To: "a"}, {From: "a", To: "b"}},
	}, map[string]pregel.Reducer{"own/v1": reducer{name: "own/v1", reduce: reduce}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// digests runs the graph on the input and returns the digest that each task was handed out with.
func digests(t *testing.T, p *pregel.Program, input string) []string {
	t.Helper()
	loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(input)}, pregel.Options{RecursionLimit: 5}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for ready := loop.Ready(); len(ready) > 0; ready = loop.Ready() {
		out = append(out, ready[0].Digest)
		loop.Deliver(ready[0], pregel.Outcome{Command: pregel.Command{
			Update: []pregel.Write{{Channel: "v", Value: pregel.Value(`"from ` + ready[0].Node + `"`)}}}})
	}
	return append(out, loop.Thread().Head.Checkpoint.Digest)
}

// TestTheDigestTellsReducersApart: that is what stops a replay with a changed reducer at the next activity.
func TestTheDigestTellsReducersApart(t *testing.T) {
	latest := func(_ pregel.Value, u []pregel.Value) (pregel.Value, error) { return u[len(u)-1], nil }
	before := digests(t, chosen(t, latest), `{"v":"in"}`)
	again := digests(t, chosen(t, latest), `{"v":"in"}`)
	changed := digests(t, chosen(t, longest), `{"v":"in"}`)
	if len(before) != 3 {
		t.Fatalf("the graph ran %d supersteps", len(before)-1)
	}
	for i := range before {
		if before[i] != again[i] {
			t.Errorf("digest %d differs between equal runs", i)
		}
	}
	// "in" is both the latest and the longest, "from a" as well; of "from a" and "from b" only one is the latest.
	if before[0] != changed[0] || before[1] != changed[1] {
		t.Error("while both reducers agree, the digests differ")
	}
	if before[2] == changed[2] {
		t.Error("where the reducers differ, the digest is the same")
	}
}

// TestTheDigestTellsValuesApart: it sums up every value that led here, whatever its spacing.
func TestTheDigestTellsValuesApart(t *testing.T) {
	latest := func(_ pregel.Value, u []pregel.Value) (pregel.Value, error) { return u[len(u)-1], nil }
	p := chosen(t, latest)
	one := digests(t, p, `{"v":{"a":1},"w":[1]}`)
	for input, same := range map[string]bool{
		`{ "v" : {"a": 1}, "w": [ 1 ] }`: true,
		`{"v":{"a":2},"w":[1]}`:          false,
		`{"v":{"a":1}}`:                  false,
		`{"v":{"a":1},"w":[1],"x":1}`:    false, // the input is a value, what the graph makes of it aside
	} {
		if other := digests(t, p, input); (one[0] == other[0]) != same {
			t.Errorf("%s: the digest is the same: %v, want %v", input, !same, same)
		}
	}
}

// TestDigestsChainUp: equal values after different histories have different digests.
func TestDigestsChainUp(t *testing.T) {
	latest := func(_ pregel.Value, u []pregel.Value) (pregel.Value, error) { return u[len(u)-1], nil }
	p := chosen(t, latest)
	one, other := digests(t, p, `{"v":1}`), digests(t, p, `{"v":2}`)
	last := len(one) - 1
	if one[last] == other[last] {
		t.Error("two threads with equal values and unequal pasts have one digest")
	}
}

// TestDigestsOfLongValues: a list's digest is made from that of the list before, and is what it would be without. A loop
// that was stored and restored, and so has only the values, comes to the same digests.
func TestDigestsOfLongValues(t *testing.T) {
	p, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "g",
		Channels: []pregel.ChannelSpec{{Name: "list", Kind: pregel.KindReduce, Reducer: "append/v1"}, {Name: "last", Kind: pregel.KindLast}},
		Nodes:    []pregel.NodeSpec{{Name: "a"}},
		Edges:    []pregel.Edge{{From: pregel.Start, To: "a"}, {From: "a", To: "a"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 700)
	update := func(step, changed int) pregel.Command {
		c := pregel.Command{Update: []pregel.Write{{Channel: "list", Value: pregel.Value(fmt.Sprintf(`["%s%d"]`, long, step))}}}
		switch {
		case step == changed:
			c.Update[0].Value = pregel.Value(fmt.Sprintf(`["%s%d!"]`, long, step))
		case step%5 == 4: // a shorter list, and then another one
			c.Update[0].Overwrite = true
		}
		if step%3 == 0 {
			c.Update = append(c.Update, pregel.Write{Channel: "last", Value: pregel.Value(fmt.Sprintf(`"%s%s%d"`, long, long, step/6))})
		}
		return c
	}
	run := func(stored bool, changed int) (out []string) {
		loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{"list":["` + long + long + `"]}`)},
			pregel.Options{RecursionLimit: 20}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for ready := loop.Ready(); len(ready) > 0; ready = loop.Ready() {
			if stored {
				loop.PutBack(ready...)
				text, err := loop.Suspend()
				if err != nil {
					t.Fatal(err)
				}
				if loop, err = p.Restore(text, nil); err != nil {
					t.Fatal(err)
				}
				ready = loop.Ready()
			}
			out = append(out, ready[0].Digest)
			loop.Deliver(ready[0], pregel.Outcome{Command: update(len(out), changed)})
		}
		return out
	}
	kept, restored := run(false, 0), run(true, 0)
	if len(kept) != 20 || !slices.Equal(kept, restored) {
		t.Fatalf("%d digests of a loop that was never stored\n%q\nand of one that was\n%q", len(kept), kept, restored)
	}
	for step := 1; step < 20; step++ {
		other := run(false, step)
		if !slices.Equal(other[:step], kept[:step]) || other[step] == kept[step] {
			t.Errorf("with another item in superstep %d the digests are\n%q\nand without\n%q", step, other, kept)
		}
	}
}
