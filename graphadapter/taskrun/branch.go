package taskrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// route evaluates the task's branches in their order. A command to the parent graph ends this graph's run, so nothing
// is routed here. Nor is anything behind an error handler, which says itself where to go.
func (t *TaskRun) route(ctx context.Context, command pregel.Command) ([]pregel.Target, error) {
	if len(t.task.Branches) == 0 || command.Parent != nil || t.task.Failure != nil {
		return nil, nil
	}
	program, err := t.graph.Program()
	if err != nil {
		return nil, err
	}
	state, err := program.Read(t.task, command.Update)
	if err != nil {
		return nil, err
	}
	var routes []pregel.Target
	for _, b := range t.task.Branches {
		chosen, err := t.choose(ctx, b, state)
		if err != nil {
			return nil, err
		}
		if t.waits() {
			return nil, nil
		}
		if routes == nil {
			routes = chosen
			continue
		}
		routes = append(routes, chosen...)
	}
	return routes, nil
}

// choose evaluates one branch.
func (t *TaskRun) choose(ctx context.Context, b pregel.Branch, state graphadapter.State) (targets []pregel.Target, err error) {
	defer graphadapter.Catch(&err)
	chosen, err := t.graph.Nodes[b.From].Branches[b.Ordinal](ctx, state)
	if err != nil || t.waits() {
		return nil, err
	}
	targets = withArgs(chosen)
	for i := range targets {
		if targets[i].Node, err = t.resolve(b, targets[i]); err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// resolve returns the node that a route leads to. The labels and targets are those of the run's own Spec. A Send names
// its node directly. One that this process's version of the branch declares and the run's does not is left to
// [graphadapter.Graph.CheckOutcome]: it is no mistake of the function.
func (t *TaskRun) resolve(b pregel.Branch, target pregel.Target) (string, error) {
	fail := func(message string) error {
		return &graphadapter.RouteError{Graph: t.info.Graph, Node: b.From, Branch: b.Ordinal, Route: target.Node, Message: message}
	}
	node := target.Node
	switch {
	case target.Send && node == pregel.End:
		return "", fmt.Errorf("branch %d of node %q of graph %q: %w", b.Ordinal, b.From, t.info.Graph,
			&pregel.InvalidUpdateError{Graph: t.info.Graph, Message: "Cannot send a packet to the END node"})
	case target.Send:
	case b.Labels != nil:
		labelled, ok := b.Labels[node]
		if !ok {
			return "", fail("not one of its labels (" + listed(slices.Sorted(maps.Keys(b.Labels))) + ")")
		}
		node = labelled
	case b.Targets != nil && !slices.Contains(b.Targets, node) && !t.declares(b, node):
		return "", fail("not one of its declared targets (" + listed(b.Targets) + ")")
	}
	if node == "" || node == pregel.Start {
		return "", fail("Branch did not return a valid destination")
	}
	return node, nil
}

// declares reports whether this process's version of a branch has a target.
func (t *TaskRun) declares(b pregel.Branch, target string) bool {
	return slices.ContainsFunc(t.graph.Spec.Branches, func(here pregel.Branch) bool {
		return here.From == b.From && here.Ordinal == b.Ordinal && slices.Contains(here.Targets, target)
	})
}

// withArgs returns targets with every Send's argument set: a Send of nothing sends null.
func withArgs(targets []pregel.Target) []pregel.Target {
	out := slices.Clone(targets)
	for i := range out {
		if out[i].Send && out[i].Arg == nil {
			out[i].Arg = pregel.Null
		}
	}
	return out
}

func listed(names []string) string {
	if len(names) == 0 {
		return "it has none"
	}
	return strings.Join(names, ", ")
}
