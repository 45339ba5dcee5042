package rig

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"superstep.dev"
)

// Counter is a state with a log, which nodes append to, and a number.
type Counter struct {
	Log superstep.List[string] `json:"log"`
	N   superstep.Value[int64] `json:"n"`
}

// Appending is a node that appends a word to the log.
func Appending(word string) func(context.Context, Counter) (Counter, error) {
	return func(_ context.Context, s Counter) (Counter, error) {
		s.Log.Append(word)
		return s, nil
	}
}

// Asking is a node that asks "really KEY?" and appends the answer to the log.
func Asking(key string) func(context.Context, Counter) (Counter, error) {
	return func(ctx context.Context, s Counter) (Counter, error) {
		yes, err := superstep.Interrupt[bool](ctx, "really "+key+"?")
		if err != nil {
			return s, err
		}
		s.Log.Append(key + " " + strconv.FormatBool(yes))
		return s, nil
	}
}

// Chain is a graph of nodes one after the other, each of which appends its name to the log.
func Chain(name string, words ...string) *superstep.StateGraph[Counter] {
	g := superstep.NewStateGraph[Counter](name)
	last := superstep.Start
	for _, w := range words {
		g.AddNode(w, Appending(w))
		g.AddEdge(last, w)
		last = w
	}
	return g
}

// Fateful is a graph whose thread fails or asks as its log says.
func Fateful(broken *atomic.Bool) *superstep.Graph[Counter] {
	g := superstep.NewStateGraph[Counter]("fateful")
	g.AddNode("a", Appending("a"))
	g.AddNode("b", func(ctx context.Context, s Counter) (Counter, error) {
		switch log := s.Log.Get(); {
		case log[0] == "fail" && broken.Load():
			return s, errors.New("broken")
		case log[0] == "ask":
			return Asking("b")(ctx, s)
		}
		return Appending("b")(ctx, s)
	})
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	return g.MustCompile()
}

// Decides is a graph that stops before b, whose branch behind a fails for a log that ends with "bad".
func Decides() *superstep.Graph[Counter] {
	g := superstep.NewStateGraph[Counter]("decides")
	g.AddNode("a", Appending("a"))
	g.AddNode("b", Appending("b"))
	g.AddEdge(superstep.Start, "a")
	g.AddConditionalEdges("a", func(_ context.Context, s Counter) ([]superstep.Target, error) {
		if log := s.Log.Get(); log[len(log)-1] == "bad" {
			return nil, errors.New("nowhere to go")
		}
		return superstep.To("b"), nil
	}, "b")
	return g.MustCompile(superstep.WithInterruptBefore("b"))
}
