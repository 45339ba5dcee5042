package segment

import (
	"bytes"
	"context"
	"encoding/json"
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
		if string(in.State["left"]) == fmt.Sprint(left) {
			return node(ctx, in)
		}
		return pregel.Command{}, nil
	}
}

// storedBy runs a segment of the graph, and returns what it left as it is stored.
func storedBy(t *testing.T, r *fusedRun, before int, record []Delivery) []byte {
	t.Helper()
	r.req.Pack, r.req.MarkBefore = true, before
	s, err := OpenSegment(r.g, r.suspended(), len(record) > 0, record, Progress{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Run(t.Context(), Host{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// markedBy is what storedBy left, and the same as it is read to its mark.
func markedBy(t *testing.T, r *fusedRun, before int, record []Delivery) (Result, MarkedResult) {
	t.Helper()
	text := storedBy(t, r, before, record)
	var whole Result
	var marked MarkedResult
	if err := errors.Join(json.Unmarshal(text, &whole), json.Unmarshal(text, &marked)); err != nil {
		t.Fatal(err)
	}
	return whole, marked
}

// TestWhoGoesOnFromAMarkComesToTheSamePlace as who delivers everything, and has delivered as many supersteps at least as
// were asked for. A mark has nothing before it that somebody has to look at.
func TestWhoGoesOnFromAMarkComesToTheSamePlace(t *testing.T) {
	memo := when(300, calling(func(ctx context.Context, task *taskrun.TaskRun) error {
		_, err := task.Memo(ctx, "once", "", func(context.Context) (pregel.Value, error) { return pregel.Value(`1`), nil })
		return err
	}))
	asks := when(50, calling(func(ctx context.Context, task *taskrun.TaskRun) error {
		_, err := task.Ask(ctx, pregel.Value(`"go on?"`), nil, "")
		return err
	}))
	for name, c := range map[string]struct {
		steps, before int
		node          graphadapter.NodeFunc
		input         string
		least, most   int // outcomes before the mark, 0 for no mark
	}{
		"none asked for":    {steps: 500},
		"the last":          {steps: 500, before: 1, least: 436, most: 499},
		"many":              {steps: 500, before: 200, least: 236, most: 300},
		"as many as are":    {steps: 500, before: 500},
		"short":             {steps: 60, before: 1},
		"a ledger":          {steps: 500, before: 1, node: memo, least: 136, most: 200},
		"a ledger soon":     {steps: 320, before: 1, node: memo},
		"a question":        {steps: 500, before: 1, node: asks, least: 386, most: 450},
		"a large state":     {steps: 500, before: 1, input: `{"left":500,"ballast":"` + strings.Repeat("x", maxMarkBytes) + `"}`},
		"a state of a size": {steps: 900, before: 1, input: `{"left":900,"ballast":"` + strings.Repeat("x", maxMarkBytes/2) + `"}`, least: 64, most: 899},
	} {
		t.Run(name, func(t *testing.T) {
			g := countdown(c.steps, c.node)
			g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "ballast", Kind: pregel.KindLast})
			if c.input == "" {
				c.input = fmt.Sprintf(`{"left":%d}`, c.steps)
			}
			r := newFusedRun(t, g, graphadapter.DurabilityAsync, input(c.input))
			whole, marked := markedBy(t, r, c.before, nil)
			if (marked.Mark != nil) != (c.most > 0) {
				t.Fatalf("it has the mark %+v", marked.Mark)
			}
			if again, err := marked.Whole(); err != nil || !reflect.DeepEqual(again, whole) {
				t.Errorf("read as a whole it has %d outcomes, else %d (%v)", len(again.Deliveries), len(whole.Deliveries), err)
			}
			if marked.Mark == nil {
				return
			}
			if n := marked.Mark.Deliveries; n < c.least || n > c.most || n+len(marked.Deliveries) != len(whole.Deliveries) {
				t.Errorf("the mark is behind %d of %d outcomes, want %d to %d; %d come then", n, len(whole.Deliveries), c.least, c.most, len(marked.Deliveries))
			}
			r.comesTo(whole, marked)
		})
	}
}

// comesTo compares what a segment's outcomes come to, from its beginning and from its mark.
func (r *fusedRun) comesTo(whole Result, marked MarkedResult) {
	r.t.Helper()
	program, err := r.g.Program()
	if err != nil {
		r.t.Fatal(err)
	}
	loop, err := program.Restore(marked.Mark.Loop, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	ready, err := Redeliver(loop, loop.Ready(), marked.Deliveries, nil)
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
		r.t.Errorf("from its mark the segment comes to\n%s\nfrom its beginning to\n%s", got, want)
	}
}

// TestAMarkOfASegmentThatWasLost: what another execution recorded counts for the marks of the one that goes on.
func TestAMarkOfASegmentThatWasLost(t *testing.T) {
	g := countdown(400, nil)
	r := newFusedRun(t, g, graphadapter.DurabilityAsync, input(`{}`))
	all, _ := markedBy(t, r, 1, nil)
	whole, marked := markedBy(t, r, 1, all.Deliveries[:150])
	if marked.Mark == nil || marked.Mark.Deliveries <= 150 {
		t.Fatalf("it has the mark %+v", marked.Mark)
	}
	r.comesTo(whole, marked)
}

// TestAMarkInASubgraph, and among tasks that run side by side, is one of the whole run.
func TestAMarkInASubgraph(t *testing.T) {
	g := countdownWithin(300)
	for before, want := range map[int]bool{1: true, 2: true, 3: false} {
		r := newFusedRun(t, g, graphadapter.DurabilityExit, input(`{}`))
		r.req.MaxConcurrency = 1 // the other task of the superstep ends soon
		whole, marked := markedBy(t, r, before, nil)
		if (marked.Mark != nil) != want {
			t.Errorf("%d supersteps before the end it has the mark %+v", before, marked.Mark)
		}
		if marked.Mark != nil {
			r.comesTo(whole, marked)
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

// TestAMarkThatIsNone is an error, not another run.
func TestAMarkThatIsNone(t *testing.T) {
	text := storedBy(t, newFusedRun(t, countdown(500, nil), graphadapter.DurabilityExit, input(`{}`)), 1, nil)
	for what, change := range map[string]func(*storedResult){
		"before all":    func(r *storedResult) { r.Mark.At = 0 },
		"behind all":    func(r *storedResult) { r.Mark.At = len(r.Packed) },
		"in the middle": func(r *storedResult) { r.Mark.At++ },
		"without any":   func(r *storedResult) { r.Packed = nil },
		"miscounted":    func(r *storedResult) { r.Mark.Deliveries++ },
	} {
		var stored storedResult
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		change(&stored)
		changed, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		var marked MarkedResult
		if err = json.Unmarshal(changed, &marked); err == nil {
			_, err = marked.Whole()
		}
		if err == nil {
			t.Errorf("%s: it was read as %+v", what, marked.Mark)
		}
	}
}

// TestAPartIsUnpackedAlone wherever it begins.
func TestAPartIsUnpackedAlone(t *testing.T) {
	var b blocks
	var text []byte
	for i := range 3 * leastBlock / 100 {
		b.put(bytes.Repeat([]byte{byte('a' + i%7)}, 97+i%5))
	}
	for _, block := range b.all {
		text = append(text, block...)
	}
	for part := 0; part <= len(text); part += 331 {
		for _, part := range []int{part, len(b.all[0]), len(b.all[0]) + len(b.all[1]), len(text)} {
			packed, at := b.packedApart("[", part, "]")
			whole, err := unpack(packed)
			if err != nil || string(whole) != "["+string(text)+"]" {
				t.Fatalf("with a part of %d bytes it is unpacked to %d (%v)", part, len(whole), err)
			}
			if (at > 0) != (part > 0) {
				t.Fatalf("a part of %d bytes ends at %d", part, at)
			}
			if behind, err := unpack(packed[at:]); part > 0 && (err != nil || string(behind) != string(text[part:])+"]") {
				t.Fatalf("behind %d bytes there are %d (%v)", part, len(behind), err)
			}
		}
	}
}
