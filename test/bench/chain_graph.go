package main

import (
	"context"
	"fmt"

	"superstep.dev"
)

const (
	chainName  = "chain"
	chainNodes = 200
	// chainNote is the whole state of a graph, and the whole input of the hand-written activities.
	chainNote = "a few words that every step reads"
)

// chainState is one small channel.
type chainState struct {
	Note superstep.Value[string] `json:"note"`
}

// chainGraph is a chain of nodes that do nothing.
func chainGraph() *superstep.Graph[chainState] {
	g := superstep.NewStateGraph[chainState](chainName)
	last := superstep.Start
	for i := range chainNodes {
		name := fmt.Sprintf("n%03d", i)
		g.AddNode(name, func(_ context.Context, s chainState) (chainState, error) { return s, nil })
		g.AddEdge(last, name)
		last = name
	}
	return g.MustCompile()
}
