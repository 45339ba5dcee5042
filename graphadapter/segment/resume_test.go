package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// when runs something else in the superstep that has that many behind it.
func when(left int, node graphadapter.NodeFunc) graphadapter.NodeFunc {
	return func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
		if in.State["left"].String() == fmt.Sprint(left) {
			return node(ctx, in)
		}
		return pregel.Command{}, nil
	}
}

// storedBy runs a segment of the graph, and returns what it left as it is stored.
func storedBy(t *testing.T, r *fusedRun, before int, record []Delivery) []byte {
	t.Helper()
	r.req.ResumeBefore = before
	s, err := OpenSegment(r.g, r.suspended(), len(record) > 0, record, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Run(t.Context(), Host{})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := result.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// resumableBy is what storedBy left as a whole, and the same as it is read to its resume point.
func resumableBy(t *testing.T, r *fusedRun, before int, record []Delivery) (Result, *StoredResult) {
	t.Helper()
	encoded := storedBy(t, r, before, record)
	whole, err := DecodeWhole(encoded)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := DecodeResult(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return whole, stored
}

// TestWhoGoesOnFromAResumePointComesToTheSamePlace as who delivers everything, and has delivered as many supersteps at least as
// were asked for. A resume point has nothing before it that somebody has to look at.
func TestWhoGoesOnFromAResumePointComesToTheSamePlace(t *testing.T) {
	pays := when(300, calling(func(ctx context.Context, task *taskrun.TaskRun) error {
		_, err := task.Effect(ctx, "pay", pregel.Value(`{}`), graphadapter.CallOptions{})
		return err
	}))
	pay := graphadapter.Effect{Name: "pay", Do: func(context.Context, string, pregel.Value) (pregel.Value, error) { return pregel.Value(`1`), nil }}
	asks := when(50, calling(func(ctx context.Context, task *taskrun.TaskRun) error {
		_, err := task.Ask(ctx, pregel.Value(`"go on?"`), nil, "")
		return err
	}))
	for name, c := range map[string]struct {
		steps, before int
		node          graphadapter.NodeFunc
		input         string
		least, most   int // outcomes before the resume point, 0 for none
	}{
		"none asked for":    {steps: 500},
		"the last":          {steps: 500, before: 1, least: 436, most: 499},
		"many":              {steps: 500, before: 200, least: 236, most: 300},
		"as many as are":    {steps: 500, before: 500},
		"short":             {steps: 60, before: 1},
		"a ledger":          {steps: 500, before: 1, node: pays, least: 136, most: 200},
		"a ledger soon":     {steps: 320, before: 1, node: pays},
		"a question":        {steps: 500, before: 1, node: asks, least: 386, most: 450},
		"a large state":     {steps: 500, before: 1, input: `{"left":500,"ballast":"` + strings.Repeat("x", maxResumeBytes) + `"}`},
		"a state of a size": {steps: 900, before: 1, input: `{"left":900,"ballast":"` + strings.Repeat("x", maxResumeBytes/2) + `"}`, least: 64, most: 899},
	} {
		t.Run(name, func(t *testing.T) {
			g := countdown(c.steps, c.node)
			g.Effects = map[string]graphadapter.Effect{"pay": pay}
			g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "ballast", Kind: pregel.KindLast})
			if c.input == "" {
				c.input = fmt.Sprintf(`{"left":%d}`, c.steps)
			}
			r := newFusedRun(t, g, graphadapter.DurabilityAsync, input(c.input))
			whole, stored := resumableBy(t, r, c.before, nil)
			if (stored.Resume != nil) != (c.most > 0) {
				t.Fatalf("it has the resume point %+v", stored.Resume)
			}
			if again, err := stored.Whole(); err != nil || !reflect.DeepEqual(again, whole) {
				t.Errorf("read as a whole it has %d outcomes, else %d (%v)", len(again.Deliveries), len(whole.Deliveries), err)
			}
			if stored.Resume == nil {
				return
			}
			if n := stored.Resume.Deliveries; n < c.least || n > c.most || n+len(stored.Deliveries) != len(whole.Deliveries) {
				t.Errorf("the resume point is behind %d of %d outcomes, want %d to %d; %d come then", n, len(whole.Deliveries), c.least, c.most, len(stored.Deliveries))
			}
			r.comesTo(whole, stored)
		})
	}
}

// comesTo compares what a segment's outcomes come to, from its beginning and from its resume point.
func (r *fusedRun) comesTo(whole Result, stored *StoredResult) {
	r.t.Helper()
	program, err := r.g.Program()
	if err != nil {
		r.t.Fatal(err)
	}
	loop, err := program.Restore(stored.Resume.Loop, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	ready, err := Redeliver(loop, loop.Ready(), stored.Deliveries, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.take(whole)
	r.loop.PutBack(r.ready...)
	loop.PutBack(ready...)
	want, errWant := r.loop.Suspend()
	got, errGot := loop.Suspend()
	if err := errors.Join(errWant, errGot); err != nil {
		r.t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		r.t.Errorf("from its resume point the segment comes to\n%s\nfrom its beginning to\n%s", got, want)
	}
}

// TestAResumePointOfASegmentThatWasLost: what another execution recorded counts for the resume points of the one that goes on.
func TestAResumePointOfASegmentThatWasLost(t *testing.T) {
	g := countdown(400, nil)
	r := newFusedRun(t, g, graphadapter.DurabilityAsync, input(`{}`))
	all, _ := resumableBy(t, r, 1, nil)
	whole, stored := resumableBy(t, r, 1, all.Deliveries[:150])
	if stored.Resume == nil || stored.Resume.Deliveries <= 150 {
		t.Fatalf("it has the resume point %+v", stored.Resume)
	}
	r.comesTo(whole, stored)
}

// TestAResumePointInASubgraph, and among tasks that run side by side, is one of the whole run.
func TestAResumePointInASubgraph(t *testing.T) {
	g := countdownWithin(300)
	for before, want := range map[int]bool{1: true, 2: true, 3: false} {
		r := newFusedRun(t, g, graphadapter.DurabilityExit, input(`{}`))
		r.req.MaxConcurrency = 1 // the other task of the superstep ends soon
		whole, stored := resumableBy(t, r, before, nil)
		if (stored.Resume != nil) != want {
			t.Errorf("%d supersteps before the end it has the resume point %+v", before, stored.Resume)
		}
		if stored.Resume != nil {
			r.comesTo(whole, stored)
		}
	}
}

// countdownWithin is a graph that has a countdown as a subgraph, with a node before it, one beside it and one behind both.
func countdownWithin(steps int) *graphadapter.Graph {
	inner := countdown(steps, nil)
	g := &graphadapter.Graph{
		Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "outer",
			Channels:  []pregel.ChannelSpec{{Name: "left", Kind: pregel.KindLast}, {Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}},
			Nodes:     []pregel.NodeSpec{{Name: "sub", Subgraph: "countdown"}, {Name: "beside"}, {Name: "after"}},
			Edges:     []pregel.Edge{{From: pregel.Start, To: "beside"}, {From: "beside", To: "sub"}, {From: "beside", To: "after"}, {From: "sub", To: "after"}},
			Subgraphs: map[string]*pregel.Spec{"countdown": inner.Spec},
		},
		Subgraphs: map[string]*graphadapter.Graph{"countdown": inner},
	}
	says := graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return pregel.Command{Update: []pregel.Write{{Channel: "log", Value: pregel.Value(`["said"]`)}}}, nil
	}}
	g.Nodes = map[string]graphadapter.Node{"beside": says, "after": says}
	return g
}

// TestAResultThatWasChanged is an error, or what it was: never another run.
func TestAResultThatWasChanged(t *testing.T) {
	encoded := storedBy(t, newFusedRun(t, countdown(500, nil), graphadapter.DurabilityExit, input(`{}`)), 1, nil)
	size, prefix := binary.Uvarint(encoded)
	blocks := prefix + int(size) // behind the header
	for at := blocks; at < len(encoded); at++ {
		changed := bytes.Clone(encoded)
		changed[at] ^= 1 << (at % 8)
		if _, err := DecodeWhole(changed); err == nil {
			t.Errorf("with byte %d of %d changed it was read", at, len(encoded))
		}
	}
	for n := range encoded {
		if _, err := DecodeWhole(encoded[:n]); err == nil {
			t.Errorf("cut off after %d of %d bytes it was read", n, len(encoded))
		}
	}
	header := encoded[prefix:blocks]
	for what, other := range map[string][]byte{
		"no resume point": []byte(`{}`),
		"miscounted":      bytes.Replace(header, []byte(`"deliveries":`), []byte(`"deliveries":1`), 1),
	} {
		changed := append(binary.AppendUvarint(nil, uint64(len(other))), other...)
		if _, err := DecodeWhole(append(changed, encoded[blocks:]...)); err == nil {
			t.Errorf("%s: it was read", what)
		}
	}
}
