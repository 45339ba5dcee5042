package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// partsGraph has every part of a request that can be large: many small channels, a large one, a Send's argument, a
// subgraph's result that branches are to see, and the run's context.
func partsGraph(big pregel.Value) *graphadapter.Graph {
	checks := func(what string, got pregel.Value) error {
		if !bytes.Equal(got, big) {
			return fmt.Errorf("%s has %d bytes, want %d", what, len(got), len(big))
		}
		return nil
	}
	plan := graphadapter.Node{
		Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			task, _ := taskrun.TaskFrom(ctx)
			if err := errors.Join(checks("the context", task.RunContext()), checks("the channel", in.State["big"].Value())); err != nil {
				return pregel.Command{}, err
			}
			for i := range 30 {
				if v := in.State[fmt.Sprintf("small-%02d", i)].Value(); !bytes.Equal(v, large(1<<10)) {
					return pregel.Command{}, fmt.Errorf("small channel %d has %d bytes", i, len(v))
				}
			}
			return pregel.Command{Goto: []pregel.Target{{Node: "work", Send: true, Arg: big}}}, nil
		},
	}
	work := graphadapter.Node{Run: func(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
		return writes("log", []string{"work"}), checks("the argument", in.Arg)
	}}
	inner := graph("inner", map[string]graphadapter.Node{"fill": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return pregel.Command{Update: []pregel.Write{{Channel: "log", Value: append(append(pregel.Value("["), big...), ']')}}}, nil
	}}}, []string{"fill"}, to(pregel.Start, "fill"))
	inner.Spec.Input = []string{}
	routes := graphadapter.Node{Branches: []graphadapter.BranchFunc{func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		var log []pregel.Value
		if err := json.Unmarshal(s["log"].Value(), &log); err != nil || len(log) == 0 {
			return nil, fmt.Errorf("the log has %d bytes: %v", len(s["log"].Value()), err)
		}
		return []pregel.Target{{Node: "end"}}, checks("the subgraph's result", log[len(log)-1])
	}}}
	g := graph("parts", map[string]graphadapter.Node{"plan": plan, "work": work, "sub": routes, "end": says("end")},
		[]string{"plan", "work", "sub", "end"}, to(pregel.Start, "plan"), to("plan", "sub"))
	g.Spec.Nodes[2].Subgraph, g.Subgraphs = "inner", map[string]*graphadapter.Graph{"inner": inner}
	g.Spec.Subgraphs = map[string]*pregel.Spec{"inner": inner.Spec}
	g.Spec.Branches = []pregel.Branch{{From: "sub", Targets: []string{"end"}}}
	g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "big", Kind: pregel.KindLast})
	for i := range 30 {
		g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: fmt.Sprintf("small-%02d", i), Kind: pregel.KindLast})
	}
	return g
}

// TestEveryPartArrives: each part of a request that can be large goes by reference, and is what it was where it arrives.
func TestEveryPartArrives(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	big := large(50 << 10)
	g := partsGraph(big)
	r.serve(decides, g)
	r.serve(runs, g)
	in := map[string]any{"big": big}
	for i := range 30 {
		in[fmt.Sprintf("small-%02d", i)] = large(1 << 10)
	}
	run := r.start(testserver.Queue(t), protocol.GraphInput{Graph: "parts", Context: big,
		Input: protocol.Input{Value: pregel.Value(asJSON(t, in))}})
	if result := r.finished(run); result.Step != 3 {
		t.Errorf("the run ended at step %d", result.Step)
	}
	sent := map[graphadapter.Part]int{}
	for _, e := range r.history(run.GetID()).Events {
		a := e.GetActivityTaskScheduledEventAttributes()
		if a == nil {
			continue
		}
		var req graphadapter.NodeRequest
		if err := converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &req); err != nil {
			t.Fatal(err)
		}
		for _, ref := range req.References {
			sent[ref.Part]++
		}
		if size := a.GetInput().Size(); size > 4<<10 {
			t.Errorf("the task of %s carries %d bytes", req.Task.Node, size)
		}
	}
	for _, part := range []graphadapter.Part{graphadapter.PartChannel, graphadapter.PartRest, graphadapter.PartArg,
		graphadapter.PartDone, graphadapter.PartContext} {
		if sent[part] == 0 {
			t.Errorf("%s never went by reference: %v", part, sent)
		}
	}
}
