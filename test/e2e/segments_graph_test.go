package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"superstep.dev"
)

// course is the state of the graph whose supersteps are fused.
type course struct {
	Dir superstep.Value[string] `json:"dir"`
	Log superstep.List[string]  `json:"log"`
}

// part is the argument of one Send.
type part struct {
	Dir string `json:"dir"`
	N   int    `json:"n"`
}

// fuses runs what there is in graphs, superstep by superstep: a plan, three Sends, a node whose first attempt fails, one
// that waits for the file "go", a write to the outside that hangs while there is a file "hang", a subgraph that asks, an
// end.
func fuses() *superstep.Graph[course] {
	steps := func(name string, after func(context.Context, string) error) func(context.Context, course) (course, error) {
		return func(ctx context.Context, s course) (course, error) {
			s.Log.Append(name)
			err := noted(s.Dir.Get(), name)
			if err == nil && after != nil {
				err = after(ctx, s.Dir.Get())
			}
			return s, err
		}
	}
	outside := fileEffect()
	g := superstep.NewStateGraph[course]("fuses")
	g.AddEffect(outside)
	g.AddNode("plan", steps("plan", nil))
	superstep.AddInputNode(g, "part", func(_ context.Context, p part) (superstep.Command[course], error) {
		var update course
		update.Log.Append(fmt.Sprint("part ", p.N))
		return superstep.Command[course]{Update: update}, noted(p.Dir, fmt.Sprint("part ", p.N))
	})
	g.AddNode("flaky", steps("flaky", func(_ context.Context, dir string) error {
		if os.Mkdir(filepath.Join(dir, "failed"), 0o755) == nil {
			return errors.New("not yet")
		}
		return nil
	}), superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 2, InitialInterval: time.Millisecond}))
	g.AddNode("gate", steps("gate", func(ctx context.Context, dir string) error {
		return awaitUntil(ctx, func() bool { return there(dir, "go") })
	}))
	g.AddNode("act", steps("act", func(ctx context.Context, dir string) error {
		_, err := outside.Call(ctx, dir)
		return err
	}))
	g.AddSubgraph("sub", fusesWithin(steps("inner", nil)))
	g.AddNode("after", steps("after", nil))
	g.AddEdge(superstep.Start, "plan")
	g.AddConditionalEdges("plan", func(_ context.Context, s course) ([]superstep.Target, error) {
		return superstep.SendEach("part", []part{{s.Dir.Get(), 1}, {s.Dir.Get(), 2}, {s.Dir.Get(), 3}}), nil
	}, "part")
	before := "part"
	for _, name := range []string{"flaky", "gate", "act", "sub", "after"} {
		g.AddEdge(before, name)
		before = name
	}
	return g.MustCompile()
}

// fusesWithin is its subgraph: a node, and one that asks.
func fusesWithin(inner func(context.Context, course) (course, error)) *superstep.Graph[course] {
	g := superstep.NewStateGraph[course]("fuses-within")
	g.AddNode("inner", inner)
	g.AddNode("ask", func(ctx context.Context, s course) (course, error) {
		_, err := superstep.Interrupt[bool](ctx, "Go on?")
		return s, err
	})
	g.AddEdge(superstep.Start, "inner")
	g.AddEdge("inner", "ask")
	return g.MustCompile()
}

// fileEffect is a write to the outside that is a file with its key as its name.
func fileEffect() *superstep.Effect[string, string] {
	return &superstep.Effect[string, string]{
		Name: "file", Target: superstep.TargetKeyed,
		Do: func(ctx context.Context, key, dir string) (string, error) {
			err := noted(dir, "did")
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, fileOf(key)), nil, 0o644)
			}
			if err == nil {
				err = awaitUntil(ctx, func() bool { return !there(dir, "hang") })
			}
			return key, err
		},
		Lookup: func(_ context.Context, key, dir string) (superstep.Finding[string], error) {
			if !there(dir, fileOf(key)) {
				return superstep.Finding[string]{Status: superstep.FindingNotFound}, noted(dir, "missed")
			}
			return superstep.Finding[string]{Status: superstep.FindingCommitted, Receipt: key}, noted(dir, "found")
		},
	}
}

func fileOf(key string) string { return fmt.Sprintf("effect-%x", key) }

func there(dir, file string) bool {
	_, err := os.Stat(filepath.Join(dir, file))
	return err == nil
}
