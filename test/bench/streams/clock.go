package main

import (
	"context"
	"os"
	"strings"
	"time"

	"superstep.dev"
)

// tick is what is emitted: the clock is that of the machine, which all processes share.
type tick struct {
	N  int   `json:"n"`
	At int64 `json:"at"` // nanoseconds
	// Since is when the execution began that emits it. A node whose worker is taken for lost runs again, at other times: what an earlier
	// execution emitted does not count then.
	Since int64  `json:"since"`
	Pad   string `json:"pad"`
}

func tickOf(n, size int, since time.Time) tick {
	return tick{N: n, At: time.Now().UnixNano(), Since: since.UnixNano(), Pad: strings.Repeat("x", size)}
}

// pace is how ticks come: so many, so far apart, with so much text in each.
type pace struct {
	// Steps are the supersteps, of so many ticks each: one task emits at most a mebibyte.
	Steps int `json:"steps"`
	Count int `json:"count"`
	Every int `json:"every_ms"`
	Size  int `json:"size"`
	// Gate is a file for which all but the first wait, "" for none.
	Gate string `json:"gate,omitempty"`
}

// all is how many ticks there are.
func (p pace) all() int { return p.Steps * p.Count }

// ticks calls on for each tick of a superstep.
func (p pace) ticks(ctx context.Context, step int, on func(tick) error) error {
	beat := time.NewTicker(max(time.Microsecond, time.Duration(p.Every)*time.Millisecond))
	defer beat.Stop()
	since := time.Now()
	for n := range p.Count {
		select {
		case <-beat.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := on(tickOf(step*p.Count+n, p.Size, since)); err != nil {
			return err
		}
		if n == 0 && p.Gate != "" {
			if err := opened(ctx, p.Gate); err != nil {
				return err
			}
		}
	}
	return nil
}

// opened waits until a file is there.
func opened(ctx context.Context, gate string) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := os.Stat(gate); err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

type clockState struct {
	Pace superstep.Value[pace] `json:"pace"`
	Done superstep.Value[int]  `json:"done"`
}

// clock is a graph whose node emits the time.
func clock() superstep.Runnable {
	g := superstep.NewStateGraph[clockState]("clock")
	g.AddNode("tick", func(ctx context.Context, s clockState) (clockState, error) {
		step := s.Done.Get()
		s.Done.Set(step + 1)
		return s, s.Pace.Get().ticks(ctx, step, func(t tick) error { return superstep.Emit(ctx, t) })
	})
	g.AddEdge(superstep.Start, "tick")
	g.AddConditionalEdges("tick", func(_ context.Context, s clockState) ([]superstep.Target, error) {
		if s.Done.Get() < s.Pace.Get().Steps {
			return superstep.To("tick"), nil
		}
		return superstep.To(superstep.End), nil
	}, "tick", superstep.End)
	return g.MustCompile()
}
