package main

import (
	"context"
	"fmt"
	"strings"

	"superstep.dev"
)

const (
	listRounds = 9
	listItems  = 3_000
	listSteps  = 200
)

// listItem is one item of the list, of 100 bytes.
var listItem = strings.Repeat("an item of one hundred bytes ", 4)[:100]

// listState is a list that grows.
type listState struct {
	Items superstep.List[string] `json:"items"`
	Turn  superstep.Value[int]   `json:"turn"`
}

// listGraph is a node that reads the whole list and appends one item, until it has run that many times.
func listGraph(steps int) *superstep.Graph[listState] {
	g := superstep.NewStateGraph[listState]("list")
	g.AddNode("again", func(_ context.Context, s listState) (listState, error) {
		if items := s.Items.Get(); len(items) != listItems+s.Turn.Get() {
			return s, fmt.Errorf("superstep %d reads %d items", s.Turn.Get(), len(items))
		}
		s.Items.Append(listItem)
		s.Turn.Set(s.Turn.Get() + 1)
		return s, nil
	})
	g.AddEdge(superstep.Start, "again")
	g.AddConditionalEdges("again", func(_ context.Context, s listState) ([]superstep.Target, error) {
		if s.Turn.Get() < steps {
			return superstep.To("again"), nil
		}
		return superstep.To(superstep.End), nil
	}, "again", superstep.End)
	return g.MustCompile()
}

// runList runs the graph in memory.
func runList(ctx context.Context, g *superstep.Graph[listState], steps int) error {
	items := make([]string, listItems)
	for i := range items {
		items[i] = listItem
	}
	out, err := g.Invoke(ctx, map[string]any{"items": items, "turn": 0}, superstep.WithRecursionLimit(steps+1))
	if err == nil && len(out.Output.Items.Get()) != listItems+steps {
		err = fmt.Errorf("the list has %d items", len(out.Output.Items.Get()))
	}
	return err
}

// engineList measures a superstep that reads a long list, through the public API and without a server.
func engineList(ctx context.Context, b *bench) ([]figure, error) {
	g := listGraph(listSteps)
	var rounds costs
	for range b.repeat(listRounds) {
		c, err := costOf(ctx, func() error { return runList(ctx, g, listSteps) })
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, c.over(listSteps*1e-3)) // in µs
	}
	return []figure{{
		Name: "engine/list", Compares: fmt.Sprintf("one superstep that reads a list of %d items of 100 bytes and appends one, in memory", listItems),
		Value: rounds.elapsed().Median(), Unit: "µs", Rounds: rounds.elapsed(), Notes: []string{rounds.note("µs")},
	}}, nil
}
