package activities_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// outside has what was written to it, and counts how often.
type outside struct {
	mu   sync.Mutex
	made map[string]bool // by key
	log  []string        // of whom, in order
}

func (o *outside) effect(name string, lookup bool) *superstep.Effect[string, string] {
	e := &superstep.Effect[string, string]{Name: name, Target: superstep.TargetNone, Do: o.write}
	if lookup {
		e.Target, e.Lookup = superstep.TargetLookupOnly, o.find
	}
	return e
}

func (o *outside) write(_ context.Context, key, whose string) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made[key] = true
	o.log = append(o.log, whose)
	return "written", nil
}

func (o *outside) find(_ context.Context, key, _ string) (superstep.Finding[string], error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made[key] {
		return superstep.Finding[string]{Status: superstep.FindingCommitted, Receipt: "found"}, nil
	}
	return superstep.Finding[string]{Status: superstep.FindingNotFound}, nil
}

func (o *outside) written() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.log)
}

// writers is a graph of two supersteps that write: first, which fails as fails says, and second, which then calls after.
func (o *outside) writers(lookup bool, fails func() error, after func(context.Context)) *graphadapter.Graph {
	type state struct {
		Log superstep.List[string] `json:"log"`
	}
	one, two := o.effect("first.write", lookup), o.effect("second.write", true)
	g := superstep.NewStateGraph[state]("writers")
	g.AddEffect(one, two)
	g.AddNode("first", func(ctx context.Context, s state) (state, error) {
		if _, err := one.Call(ctx, "first"); err != nil {
			return s, err
		}
		return s, fails()
	})
	g.AddNode("second", func(ctx context.Context, s state) (state, error) {
		_, err := two.Call(ctx, "second")
		after(ctx)
		s.Log.Append("done")
		return s, err
	})
	g.AddEdge(superstep.Start, "first")
	g.AddEdge("first", "second")
	return g.MustCompile().Adapter()
}

// TestWhatALostSegmentDidIsLookedUp: its worker is lost with two supersteps that nobody knows of. What stops the one that
// takes over did not stop it: a question about what became of the first write, a failure, the run's end from outside. The
// second write is looked up all the same.
func TestWhatALostSegmentDidIsLookedUp(t *testing.T) {
	for _, c := range []struct {
		name      string
		mode      protocol.GraphInput
		lookup    bool // the first write can be looked up
		fails     bool // the first node fails in later executions
		terminate bool
	}{
		{"a doubt", protocol.GraphInput{Durability: graphadapter.DurabilityExit}, false, false, false},
		{"a failure", protocol.GraphInput{Durability: graphadapter.DurabilityExit}, true, true, false},
		{"a termination", protocol.GraphInput{Fused: true}, true, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, out := newRig(t), &outside{made: map[string]bool{}}
			var line *line
			var firsts seen[int]
			var once sync.Once
			var healed atomic.Bool
			lost := make(chan struct{})
			g := out.writers(c.lookup, func() error {
				if firsts.add(1) > 1 && c.fails && !healed.Load() {
					return superstep.Permanent(errors.New("not today"))
				}
				return nil
			}, func(ctx context.Context) {
				first := false
				once.Do(func() { first = true })
				if first {
					line.freeze()
					close(lost)
					<-ctx.Done()
				}
			})
			line, _ = r.work(g)
			in := c.mode
			in.Graph = "writers"
			run := r.start(in)
			<-lost
			if c.terminate {
				if err := r.client.TerminateWorkflow(r.ctx, run.GetID(), run.GetRunID(), "by hand"); err != nil {
					t.Fatal(err)
				}
			}
			r.work(g)
			superstepClient, err := superstep.NewClient(r.client, superstep.ClientConfig{TaskQueue: r.queue})
			if err != nil {
				t.Fatal(err)
			}
			if !c.lookup {
				q := r.question(run)
				err := r.client.SignalWorkflow(r.ctx, run.GetID(), "", protocol.SignalResume, protocol.ResumeRequest{ID: "r",
					Question: q.ID, Value: pregel.Value(`{"action":"done","receipt":"seen by ann"}`)})
				if err != nil {
					t.Fatal(err)
				}
			} else {
				if err := run.Get(r.ctx, nil); err == nil {
					t.Fatal("the first run ended well")
				}
				healed.Store(true)
				if _, err := superstepClient.Retry(r.ctx, thread.RetryRequest{Thread: run.GetID()}); err != nil {
					t.Fatal(err)
				}
			}
			run = r.client.GetWorkflow(r.ctx, run.GetID(), "")
			if log := r.log(run); log != `["done"]` {
				t.Errorf("the thread ended with %s", log)
			}
			if log := out.written(); !slices.Equal(log, []string{"first", "second"}) {
				t.Errorf("written were %v", log)
			}
		})
	}
}
