package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// The graphs of these tests. Their nodes are functions of what they are given, so that a run on a server comes to the
// same end as one in memory; only flaky nodes count.

func writes(pairs ...any) pregel.Command {
	var c pregel.Command
	for i := 0; i < len(pairs); i += 2 {
		text, err := json.Marshal(pairs[i+1])
		if err != nil {
			panic(err)
		}
		c.Update = append(c.Update, pregel.Write{Channel: pairs[i].(string), Value: text})
	}
	return c
}

// says is a node that writes its name, and the Send's argument if there is one, to the log.
func says(name string) graphadapter.Node {
	return graphadapter.Node{Run: func(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
		return writes("log", []string{name + string(in.Arg)}), nil
	}}
}

// asking is a node that asks its questions one after the other and writes the answers to the log.
func asking(name string, questions ...string) graphadapter.Node {
	return graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		log := []string{name}
		for _, q := range questions {
			answer, err := task.Ask(ctx, pregel.Value(fmt.Sprintf("%q", q)), pregel.Value(`{"type":"string"}`), "")
			if err != nil {
				return pregel.Command{}, err
			}
			log = append(log, string(answer))
		}
		return writes("log", log), nil
	}}
}

// flaky is a node that fails that often for each thread before it writes its name.
func flaky(name string, failures int, policies ...graphadapter.RetryPolicy) graphadapter.Node {
	var mu sync.Mutex
	failed := map[string]int{}
	return graphadapter.Node{Retry: policies, Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		thread := task.Info().Thread
		mu.Lock()
		defer mu.Unlock()
		if failed[thread] < failures {
			failed[thread]++
			return pregel.Command{}, errors.New(name + " is not ready")
		}
		return writes("log", []string{name}), nil
	}}
}

// often repeats at once, often enough.
var often = graphadapter.RetryPolicy{InitialInterval: -1, NoJitter: true, MaxAttempts: 5}

// graph makes a graph of a log, with these nodes and edges.
func graph(name string, nodes map[string]graphadapter.Node, order []string, edges ...pregel.Edge) *graphadapter.Graph {
	g := &graphadapter.Graph{
		Spec: &pregel.Spec{
			Version: pregel.SpecVersion, Name: name,
			Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}},
			Edges:    edges,
		},
		Nodes: nodes,
	}
	for _, n := range order {
		g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: n})
	}
	return g
}

func to(from, to string) pregel.Edge { return pregel.Edge{From: from, To: to} }

func chainGraph() *graphadapter.Graph {
	return graph("chain", map[string]graphadapter.Node{"a": says("a"), "b": says("b"), "c": says("c")}, []string{"a", "b", "c"},
		to(pregel.Start, "a"), to("a", "b"), to("b", "c"))
}

// manyRounds is how often roundsGraph runs its node: what comes of so many is packed.
const manyRounds = 150

// roundsGraph is a node that leads to itself until it has run that often.
func roundsGraph() *graphadapter.Graph {
	round := says("r")
	round.Branches = []graphadapter.BranchFunc{func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		var log []string
		if err := json.Unmarshal(s["log"].Value(), &log); err != nil || len(log) == manyRounds {
			return []pregel.Target{{Node: pregel.End}}, err
		}
		return []pregel.Target{{Node: "round"}}, nil
	}}
	g := graph("rounds", map[string]graphadapter.Node{"round": round}, []string{"round"}, to(pregel.Start, "round"))
	g.Spec.Branches = []pregel.Branch{{From: "round", Targets: []string{"round", pregel.End}}}
	return g
}

// fanOutGraph plans by a branch: two edges and three Sends side by side, joined at the end.
func fanOutGraph() *graphadapter.Graph {
	plan := says("plan")
	plan.Branches = []graphadapter.BranchFunc{func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		var log []string
		if err := json.Unmarshal(s["log"].Value(), &log); err != nil {
			return nil, err
		}
		targets := []pregel.Target{{Node: "left"}, {Node: "right"}}
		for i := range 3 {
			targets = append(targets, pregel.Target{Node: "work", Send: true, Arg: pregel.Value(fmt.Sprint(i + len(log)))})
		}
		return targets, nil
	}}
	g := graph("fan-out", map[string]graphadapter.Node{
		"plan": plan, "left": says("left"), "right": says("right"), "work": says("work"), "end": says("end"),
	}, []string{"plan", "left", "right", "work", "end"}, to(pregel.Start, "plan"))
	g.Spec.Branches = []pregel.Branch{{From: "plan", Targets: []string{"left", "right", "work"}}}
	g.Spec.Joins = []pregel.Join{{From: []string{"left", "right"}, To: "end"}}
	return g
}

// approvalGraph asks three people at once; the second is asked twice.
func approvalGraph() *graphadapter.Graph {
	return graph("approval", map[string]graphadapter.Node{
		"one": asking("one", "first"), "two": asking("two", "second", "third"), "three": asking("three", "fourth"), "end": says("end"),
	}, []string{"one", "two", "three", "end"},
		to(pregel.Start, "one"), to(pregel.Start, "two"), to(pregel.Start, "three"),
		to("one", "end"), to("two", "end"), to("three", "end"))
}

// failingGraph has a node that fails for good the first time, beside one that finishes.
func failingGraph() *graphadapter.Graph {
	return graph("failing", map[string]graphadapter.Node{"bad": flaky("bad", 1), "good": says("good"), "end": says("end")},
		[]string{"bad", "good", "end"}, to(pregel.Start, "bad"), to(pregel.Start, "good"), to("bad", "end"))
}

func retryGraph() *graphadapter.Graph {
	return graph("retry", map[string]graphadapter.Node{"flaky": flaky("flaky", 2, often), "end": says("end")},
		[]string{"flaky", "end"}, to(pregel.Start, "flaky"), to("flaky", "end"))
}

// nestedGraph runs a graph that asks, within a graph.
func nestedGraph() *graphadapter.Graph {
	inner := graph("inner", map[string]graphadapter.Node{"first": says("first"), "asker": asking("asker", "inside")},
		[]string{"first", "asker"}, to(pregel.Start, "first"), to("first", "asker"))
	inner.Spec.Input = []string{}
	g := graph("nested", map[string]graphadapter.Node{"before": says("before"), "after": says("after")},
		[]string{"before", "sub", "after"}, to(pregel.Start, "before"), to("before", "sub"), to("sub", "after"))
	g.Spec.Nodes[1].Subgraph = "inner"
	g.Spec.Subgraphs = map[string]*pregel.Spec{"inner": inner.Spec}
	g.Subgraphs = map[string]*graphadapter.Graph{"inner": inner}
	return g
}

// best is a reducer of these tests; what it prefers is behaviour that a deploy might change.
type best struct{ prefers func(a, b pregel.Value) bool }

func (best) Name() string       { return "tests.best/v1" }
func (best) Zero() pregel.Value { return nil }

func (r best) Reduce(current pregel.Value, updates []pregel.Value) (pregel.Value, error) {
	for _, u := range updates {
		if current == nil || r.prefers(u, current) {
			current = u
		}
	}
	return current, nil
}

func longer(a, b pregel.Value) bool  { return len(a) > len(b) }
func shorter(a, b pregel.Value) bool { return len(a) < len(b) }

// reducingGraph has a reducer of its own.
func reducingGraph(prefers func(a, b pregel.Value) bool) *graphadapter.Graph {
	node := func(text string) graphadapter.Node {
		return graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
			return writes("best", text, "log", []string{text}), nil
		}}
	}
	g := graph("reducing", map[string]graphadapter.Node{"a": node("short"), "b": node("much longer"), "c": node("the end")},
		[]string{"a", "b", "c"}, to(pregel.Start, "a"), to(pregel.Start, "b"), to("a", "c"))
	g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "best", Kind: pregel.KindReduce, Reducer: "tests.best/v1"})
	g.Reducers = map[string]pregel.Reducer{"tests.best/v1": best{prefers}}
	return g
}

// handledGraph has two nodes that fail for good side by side; the handler of both asks what to do.
func handledGraph() *graphadapter.Graph {
	helper := graphadapter.Node{Handle: func(ctx context.Context, _ graphadapter.Input, failure *pregel.NodeError) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		if failure.Node == "bad" {
			return writes("log", []string{"helped " + failure.Message}), nil
		}
		answer, err := task.Ask(ctx, pregel.Value(`"help?"`), nil, "")
		return writes("log", []string{string(answer) + " " + failure.Message}), err
	}}
	g := graph("handled", map[string]graphadapter.Node{"bad": flaky("bad", 9), "worse": flaky("worse", 9), "helper": helper, "end": says("end")},
		[]string{"bad", "worse", "helper", "end"}, to(pregel.Start, "bad"), to(pregel.Start, "worse"))
	g.Spec.Nodes[0].ErrorHandler, g.Spec.Nodes[1].ErrorHandler, g.Spec.Nodes[2].Handler = "helper", "helper", true
	return g
}

func toRight(context.Context, graphadapter.State) ([]pregel.Target, error) {
	return []pregel.Target{{Node: "right"}}, nil
}

func allGraphs() []*graphadapter.Graph {
	return []*graphadapter.Graph{chainGraph(), roundsGraph(), fanOutGraph(), approvalGraph(), failingGraph(), retryGraph(), nestedGraph(), reducingGraph(longer),
		branchingGraph(toRight), windingGraph(), hangingGraph(new(atomic.Int32)), handledGraph(), undoingGraph(), waitingGraph(waitsFor(time.Hour, "paid", "sent"), says("right")), asksOnce(), paymentGraph(payment()),
		(&crew{}).expertGraph("worker")}
}
