package segment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// countdown is a graph with a loop of that many supersteps.
func countdown(steps int, node graphadapter.NodeFunc) *graphadapter.Graph {
	left := func(state graphadapter.State) (n int) {
		_ = json.Unmarshal(state["left"].Value(), &n)
		return n
	}
	return &graphadapter.Graph{
		Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "countdown",
			Channels: []pregel.ChannelSpec{{Name: "left", Kind: pregel.KindLast}},
			Nodes:    []pregel.NodeSpec{{Name: "tick"}},
			Edges:    []pregel.Edge{{From: pregel.Start, To: "tick"}},
			Branches: []pregel.Branch{{From: "tick", Ordinal: 0}},
		},
		Nodes: map[string]graphadapter.Node{"tick": {
			Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
				if node != nil {
					if c, err := node(ctx, in); err != nil || len(c.Update) > 0 {
						return c, err
					}
				}
				n := left(in.State)
				if in.State["left"].Value() == nil {
					n = steps
				}
				return pregel.Command{Update: []pregel.Write{{Channel: "left", Value: pregel.Value(fmt.Sprint(n - 1))}}}, nil
			},
			Branches: []graphadapter.BranchFunc{func(_ context.Context, state graphadapter.State) ([]pregel.Target, error) {
				if left(state) > 0 {
					return []pregel.Target{{Node: "tick"}}, nil
				}
				return []pregel.Target{{Node: pregel.End}}, nil
			}},
		}},
	}
}

// fusedRun drives a run of a graph as the workflow does: it keeps its own loop, and hands it to segments.
type fusedRun struct {
	t      *testing.T
	g      *graphadapter.Graph
	loop   *pregel.Loop
	ready  []*pregel.Task
	events []pregel.EventKind
	req    Request
}

func newFusedRun(t *testing.T, g *graphadapter.Graph, mode graphadapter.Durability, in pregel.Input) *fusedRun {
	t.Helper()
	r := &fusedRun{t: t, g: g, req: Request{Graph: g.Spec.Name, Thread: "r-7", Durability: mode, LedgerBytes: 128 << 10}}
	program, err := g.Program()
	if err != nil {
		t.Fatal(err)
	}
	r.loop, err = program.Start(pregel.NewThread(), in, graphadapter.RunOptions{}.Engine(), false,
		func(e pregel.Event) { r.events = append(r.events, e.Kind) })
	if err != nil {
		t.Fatal(err)
	}
	r.ready = r.loop.Ready()
	return r
}

// suspended is the request for the run as it stands.
func (r *fusedRun) suspended() *Request {
	r.t.Helper()
	r.loop.PutBack(r.ready...)
	suspended, err := r.loop.Suspend()
	if err != nil {
		r.t.Fatal(err)
	}
	r.ready = r.loop.Ready()
	req := r.req
	req.Loop = suspended
	return &req
}

// take delivers what a segment brought.
func (r *fusedRun) take(result Result) {
	r.t.Helper()
	if result.made > 0 { // as Run returned it
		stored, err := result.asStored()
		if err != nil {
			r.t.Fatal(err)
		}
		result = stored
	}
	ready, err := Redeliver(r.loop, r.ready, result.Deliveries, nil)
	if err == nil {
		r.ready, err = yield(r.loop, ready, result.Left)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestASegmentRunsToTheEnd(t *testing.T) {
	for _, mode := range []graphadapter.Durability{graphadapter.DurabilitySync, graphadapter.DurabilityAsync, graphadapter.DurabilityExit} {
		t.Run(string(mode), func(t *testing.T) {
			g := countdown(50, nil)
			var plain []pregel.EventKind
			if _, err := taskrun.Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{Observer: func(e pregel.Event) { plain = append(plain, e.Kind) }}); err != nil {
				t.Fatal(err)
			}
			r := newFusedRun(t, g, mode, input(`{}`))
			kept := 0
			result, err := RunSegment(t.Context(), g, r.suspended(), Host{Keep: func(context.Context) error { kept++; return nil }})
			if err != nil {
				t.Fatal(err)
			}
			r.take(result)
			if r.loop.Status() != pregel.StatusDone || string(r.loop.Output()["left"]) != "0" {
				t.Errorf("the run stands at %v with %s, %v", r.loop.Status(), r.loop.Output(), r.loop.Err())
			}
			if !slices.Equal(r.events, plain) {
				t.Errorf("the run had other events:\n%v\nwant\n%v", r.events, plain)
			}
			if kept != 49 {
				t.Errorf("its host was asked %d times between 50 supersteps", kept)
			}
		})
	}
}

// TestALostSegmentGoesOnBehindItsRecord at every superstep: what was recorded does not run again.
func TestALostSegmentGoesOnBehindItsRecord(t *testing.T) {
	died := errors.New("the worker died")
	for dies := 1; dies < 10; dies++ {
		var runs atomic.Int32
		g := countdown(10, func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			runs.Add(1)
			return pregel.Command{}, nil
		})
		r := newFusedRun(t, g, graphadapter.DurabilitySync, input(`{}`))
		req := r.suspended()
		first, err := OpenSegment(g, req, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, die := context.WithCancelCause(t.Context())
		var record []byte
		var left map[string]pregel.Value
		kept := 0
		_, err = first.Run(ctx, Host{Keep: func(context.Context) error {
			left = first.Left()
			record, _ = first.Record()
			if kept++; kept == dies {
				die(died)
			}
			return nil
		}})
		if !errors.Is(err, died) {
			t.Fatalf("the segment ended with %v", err)
		}
		known, err := DecodeRecord(record)
		if err != nil || len(known) != dies {
			t.Fatalf("the record has %d outcomes, want %d: %v", len(known), dies, err)
		}
		again, err := OpenSegment(g, req, true, known, left)
		if err != nil {
			t.Fatal(err)
		}
		result, err := again.Run(t.Context(), Host{})
		if err != nil {
			t.Fatal(err)
		}
		r.take(result)
		if r.loop.Status() != pregel.StatusDone || runs.Load() != 10 {
			t.Errorf("lost after %d records, the node ran %d times and the run stands at %v", dies, runs.Load(), r.loop.Status())
		}
	}
}

// TestASegmentDeliversWhatIsRead: encoding a value escapes and compacts it, and the run's own loop sees what was encoded.
func TestASegmentDeliversWhatIsRead(t *testing.T) {
	g := countdown(3, nil)
	g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "text", Kind: pregel.KindLast})
	run := g.Nodes["tick"].Run
	g.Nodes["tick"] = graphadapter.Node{Branches: g.Nodes["tick"].Branches, Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
		c, err := run(ctx, in)
		c.Update = append(c.Update, pregel.Write{Channel: "text", Value: pregel.Value(`{ "a>b": "<&\u2028" }`)})
		return c, err
	}}
	r := newFusedRun(t, g, graphadapter.DurabilityExit, input(`{}`))
	result, err := RunSegment(t.Context(), g, r.suspended(), Host{})
	if err != nil {
		t.Fatal(err)
	}
	if r.take(result); r.loop.Status() != pregel.StatusDone {
		t.Errorf("the run stands at %v", r.loop.Status())
	}
}

func BenchmarkSegment(b *testing.B) {
	g := countdown(b.N, nil)
	program, err := g.Program()
	if err != nil {
		b.Fatal(err)
	}
	opts := graphadapter.RunOptions{}
	opts.RecursionLimit = b.N + 10
	loop, err := program.Start(pregel.NewThread(), input(`{}`), opts.Engine(), false, nil)
	if err != nil {
		b.Fatal(err)
	}
	suspended, err := loop.Suspend()
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	req := &Request{Graph: "countdown", Thread: "r-7", Durability: graphadapter.DurabilityExit, LedgerBytes: 128 << 10, Loop: suspended}
	result, err := RunSegment(b.Context(), g, req, Host{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := Redeliver(loop, loop.Ready(), result.Deliveries, nil); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(result.Deliveries)), "deliveries")
}
