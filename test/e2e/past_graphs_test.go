package e2e_test

import (
	"context"
	"os"
	"path/filepath"

	"superstep.dev"
)

// plan is the state of the graphs whose past is changed. All its reducers are Superstep's own, so any program can read
// it.
type plan struct {
	Dir   superstep.Value[string] `json:"dir"`
	Note  superstep.Value[string] `json:"note"`
	Log   superstep.List[string]  `json:"log"`
	Local superstep.Value[string] `json:"local"`
}

// chooses runs "first" and then what its note says, "left" or "right", and "last". The choice waits while there is a file
// "hold".
func chooses() *superstep.Graph[plan] {
	g := superstep.NewStateGraph[plan]("chooses")
	for _, name := range []string{"first", "left", "right", "last"} {
		g.AddNode(name, logs(name))
	}
	g.AddEdge(superstep.Start, "first")
	g.AddConditionalEdges("first", func(ctx context.Context, s plan) ([]superstep.Target, error) {
		err := noted(s.Dir.Get(), "choice")
		if err == nil {
			err = awaitUntil(ctx, func() bool {
				_, err := os.Stat(filepath.Join(s.Dir.Get(), "hold"))
				return os.IsNotExist(err)
			})
		}
		return superstep.To(s.Note.Get()), err
	}, "left", "right")
	g.AddEdge("left", "last")
	g.AddEdge("right", "last")
	return g.MustCompile()
}

// nests has a subgraph "team", whose node "expert" asks.
func nests() *superstep.Graph[plan] {
	team := superstep.NewStateGraph[plan]("team")
	team.AddNode("reads", func(_ context.Context, s plan) (plan, error) {
		s.Local.Set("read by the team")
		return s, nil
	})
	team.AddNode("expert", func(ctx context.Context, s plan) (plan, error) {
		answer, err := superstep.Interrupt[string](ctx, "What of "+s.Local.Get()+"?")
		if err == nil {
			s.Note.Set(answer)
		}
		return s, err
	})
	team.AddEdge(superstep.Start, "reads")
	team.AddEdge("reads", "expert")
	g := superstep.NewStateGraph[plan]("nests")
	g.AddSubgraph("team", team.MustCompile())
	g.AddNode("tells", func(ctx context.Context, s plan) (plan, error) {
		tenant, err := superstep.RunContext[map[string]string](ctx)
		s.Log.Append(s.Note.Get() + " for " + tenant["tenant"])
		return s, err
	})
	g.AddEdge(superstep.Start, "team")
	g.AddEdge("team", "tells")
	return g.MustCompile(superstep.WithInterruptBefore("tells"))
}

// logs notes outside, and in the state, that a node ran.
func logs(node string) func(context.Context, plan) (plan, error) {
	return func(_ context.Context, s plan) (plan, error) {
		s.Log.Append(node)
		return s, noted(s.Dir.Get(), node)
	}
}
