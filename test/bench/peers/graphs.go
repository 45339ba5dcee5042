package main

import (
	"context"
	"os"
	"time"

	"superstep.dev"
)

// The graphs, each of which exists for LangGraph as well, in graphs.py and in invoke.mjs; all but the last two.
const (
	chainGraph = "chain"
	fanGraph   = "fan"
	askGraph   = "ask"
	talkGraph  = "talk"
	callsGraph = "calls"
	slowGraph  = "slow"
	largeGraph = "large"
)

// state is that of every graph.
type state struct {
	Steps superstep.Value[int]    `json:"steps"` // how many supersteps are wanted
	Step  superstep.Value[int]    `json:"step"`  // how many there were, or what else is counted
	Note  superstep.Value[string] `json:"note"`
	Texts superstep.List[string]  `json:"texts"`
	Done  superstep.List[int]     `json:"done"`
}

// graphs are all, by name.
func graphs() map[string]*superstep.Graph[state] {
	return map[string]*superstep.Graph[state]{
		chainGraph: loop(chainGraph, func(context.Context, *state) {}),
		callsGraph: loop(callsGraph, func(_ context.Context, s *state) {
			if len(s.Texts.Get()) >= callTexts {
				s.Texts.Append("noted")
			}
		}),
		largeGraph: loop(largeGraph, func(ctx context.Context, s *state) {
			s.Texts.Append(texts(superstep.Info(ctx).Thread, len(s.Texts.Get()), callTexts)...)
		}),
		fanGraph: fan(), askGraph: ask(), talkGraph: talk(), slowGraph: slow(),
	}
}

// loop is a node that runs again until it has run as often as the input wants.
func loop(name string, work func(context.Context, *state)) *superstep.Graph[state] {
	g := superstep.NewStateGraph[state](name)
	g.AddNode("again", func(ctx context.Context, s state) (state, error) {
		work(ctx, &s)
		s.Step.Set(s.Step.Get() + 1)
		return s, nil
	})
	g.AddEdge(superstep.Start, "again")
	g.AddConditionalEdges("again", func(_ context.Context, s state) ([]superstep.Target, error) {
		if s.Step.Get() < s.Steps.Get() {
			return superstep.To("again"), nil
		}
		return superstep.To(superstep.End), nil
	}, "again", superstep.End)
	return g.MustCompile()
}

// fan is as many Sends as the input has steps, and a node behind all of them.
func fan() *superstep.Graph[state] {
	g := superstep.NewStateGraph[state](fanGraph)
	g.AddNode("leaf", func(_ context.Context, s state) (state, error) {
		s.Done.Append(s.Steps.Get())
		return s, nil
	})
	g.AddNode("join", func(_ context.Context, s state) (state, error) {
		s.Step.Set(len(s.Done.Get()))
		return s, nil
	})
	g.AddConditionalEdges(superstep.Start, func(_ context.Context, s state) ([]superstep.Target, error) {
		args := make([]fields, s.Steps.Get())
		for i := range args {
			args[i] = fields{"steps": i}
		}
		return superstep.SendEach("leaf", args), nil
	}, "leaf")
	g.AddEdge("leaf", "join")
	return g.MustCompile()
}

// ask asks in its first node and ends behind its second.
func ask() *superstep.Graph[state] {
	g := superstep.NewStateGraph[state](askGraph)
	g.AddNode("ask", func(ctx context.Context, s state) (state, error) {
		if _, err := superstep.Interrupt[bool](ctx, "go on?"); err != nil {
			return s, err
		}
		s.Step.Set(1)
		return s, nil
	})
	g.AddNode("answered", func(_ context.Context, s state) (state, error) {
		s.Step.Set(s.Step.Get() + 1)
		return s, nil
	})
	g.AddEdge(superstep.Start, "ask")
	g.AddEdge("ask", "answered")
	return g.MustCompile()
}

// talk counts what was said so far.
func talk() *superstep.Graph[state] {
	g := superstep.NewStateGraph[state](talkGraph)
	g.AddNode("hear", func(_ context.Context, s state) (state, error) {
		s.Step.Set(len(s.Texts.Get()))
		return s, nil
	})
	g.AddEdge(superstep.Start, "hear")
	return g.MustCompile()
}

// slowWork is how long the node works in which its worker is killed.
const slowWork = time.Second

// slow works for a second, and then shows that the next superstep began. Both nodes say when and where they start.
func slow() *superstep.Graph[state] {
	g := superstep.NewStateGraph[state](slowGraph)
	g.AddNode("work", func(ctx context.Context, s state) (state, error) {
		tell(notice{Thread: superstep.Info(ctx).Thread, Node: "work"})
		return s, rest(ctx, slowWork)
	})
	g.AddNode("next", func(ctx context.Context, s state) (state, error) {
		tell(notice{Thread: superstep.Info(ctx).Thread, Node: "next"})
		s.Step.Set(os.Getpid())
		return s, nil
	})
	g.AddEdge(superstep.Start, "work")
	g.AddEdge("work", "next")
	return g.MustCompile()
}

// rest waits, unless ctx ends first.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
