package main

import (
	"context"

	"superstep.dev"
)

const (
	graphName = "soak"
	stepNode  = "step"
)

// soakState counts supersteps and keeps what it was answered.
type soakState struct {
	At      superstep.Value[int]   `json:"at"`
	Steps   superstep.Value[int]   `json:"steps"` // at which it ends
	Every   superstep.Value[int]   `json:"every"` // it asks at each of so many
	Answers superstep.List[string] `json:"answers"`
}

// soakGraph goes round and round.
func soakGraph() *superstep.Graph[soakState] {
	g := superstep.NewStateGraph[soakState](graphName)
	g.AddNode(stepNode, func(ctx context.Context, s soakState) (soakState, error) {
		n := s.At.Get() + 1
		if n%s.Every.Get() == 0 {
			answer, err := superstep.Interrupt[string](ctx, n)
			if err != nil {
				return s, err
			}
			s.Answers.Append(answer)
		}
		s.At.Set(n)
		return s, nil
	})
	g.AddEdge(superstep.Start, stepNode)
	g.AddConditionalEdges(stepNode, func(_ context.Context, s soakState) ([]superstep.Target, error) {
		if s.At.Get() < s.Steps.Get() {
			return superstep.To(stepNode), nil
		}
		return superstep.To(superstep.End), nil
	}, stepNode, superstep.End)
	return g.MustCompile()
}
