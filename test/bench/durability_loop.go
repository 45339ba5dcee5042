package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"superstep.dev"
	"superstep.dev/thread"
)

const (
	loopName  = "loop"
	manySteps = 1_000
)

// loopState counts.
type loopState struct {
	Turn superstep.Value[int]    `json:"turn"`
	Note superstep.Value[string] `json:"note"`
}

// loopGraph is a node that runs again until it has run 1,000 times.
func loopGraph() *superstep.Graph[loopState] {
	g := superstep.NewStateGraph[loopState](loopName)
	g.AddNode("again", func(_ context.Context, s loopState) (loopState, error) {
		s.Turn.Set(s.Turn.Get() + 1)
		return s, nil
	})
	g.AddEdge(superstep.Start, "again")
	g.AddConditionalEdges("again", func(_ context.Context, s loopState) ([]superstep.Target, error) {
		if s.Turn.Get() < manySteps {
			return superstep.To("again"), nil
		}
		return superstep.To(superstep.End), nil
	}, "again", superstep.End)
	return g.MustCompile()
}

// runLoop starts the loop as users do, with the options of a mode, and waits for it as they do.
func (c *chainRuns) runLoop(ctx context.Context, req thread.StartRequest) (trip, error) {
	id := "loop-" + uuid.NewString()
	req.Graph, req.Thread = loopName, id
	req.Input = fmt.Appendf(nil, `{"note":%q}`, chainNote)
	return c.travel(ctx, id, manySteps, func() (runID string, err error) {
		view, err := startRequest(ctx, c.client, req)
		if err != nil {
			return "", err
		}
		return view.RunID, c.wait(ctx, id, manySteps)
	})
}

// runInMemory runs the loop without any server.
func runInMemory(ctx context.Context) (trip, error) {
	began := time.Now()
	_, err := loopGraph().Invoke(ctx, map[string]any{"note": chainNote})
	return trip{steps: manySteps, wall: time.Since(began)}, err
}
