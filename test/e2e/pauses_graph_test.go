package e2e_test

import (
	"context"
	"errors"

	"superstep.dev"
)

// settles takes an order once there is a file "go", waits for the event "paid", and ships, which fails while there is a
// file "broken".
func settles() *superstep.Graph[work] {
	g := superstep.NewStateGraph[work]("settles")
	g.AddNode("take", func(ctx context.Context, s work) (work, error) {
		s, err := ran(s, "take")
		if err == nil {
			err = await(ctx, s, "go")
		}
		return s, err
	})
	g.AddNode("settle", func(ctx context.Context, s work) (work, error) {
		word, err := superstep.WaitEvent[string](ctx, "paid", 0)
		s.Log.Append("paid " + word)
		return s, err
	})
	g.AddNode("ship", func(_ context.Context, s work) (work, error) {
		s, err := ran(s, "ship")
		if err == nil && exists(s, "broken") {
			err = errors.New("no ship")
		}
		return s, err
	})
	g.AddEdge(superstep.Start, "take")
	g.AddEdge("take", "settle")
	g.AddEdge("settle", "ship")
	return g.MustCompile()
}
