package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"superstep.dev/graphadapter"
)

// newTrials builds all cases, each under a graph name of its own: one worker serves them all. durability is for the run
// actions that name none.
func newTrials(cases []source, durability string) []*trial {
	out := make([]*trial, len(cases))
	for i := range cases {
		out[i] = newTrial(&cases[i], fmt.Sprintf("%s-%d", rootName, i))
		if out[i].broken == nil {
			out[i].run.durability = durability
		}
	}
	return out
}

// graphsOf are the graphs that can be served.
func graphsOf(trials []*trial) []*graphadapter.Graph {
	var out []*graphadapter.Graph
	for _, t := range trials {
		if t.broken == nil && t.run.refused == nil {
			out = append(out, t.run.root.graph)
		}
	}
	return out
}

// judgeAll runs the trials, at most parallel of them at a time, and notes each verdict in the order of the trials.
func judgeAll(ctx context.Context, e engine, trials []*trial, parallel int, note func(*trial, verdict)) {
	verdicts := make([]chan verdict, len(trials))
	for i := range verdicts {
		verdicts[i] = make(chan verdict, 1)
	}
	var workers sync.WaitGroup
	next := make(chan int)
	for range min(cmp.Or(parallel, e.parallel()), len(trials)) {
		workers.Go(func() {
			for i := range next {
				verdicts[i] <- trials[i].judge(ctx, e)
			}
		})
	}
	workers.Go(func() {
		defer close(next)
		for i := range trials {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	})
	for i, t := range trials {
		select {
		case v := <-verdicts[i]:
			note(t, v)
		case <-ctx.Done():
			workers.Wait()
			return
		}
	}
	workers.Wait()
}

// tally prints verdicts as they come and counts them.
type tally struct {
	verbose                  bool
	out                      io.Writer
	passed, deviated, failed int
	cut                      int // of those that did not fail: compared without what exit does not keep
	partly                   int // of those that deviated: compared until a declared situation came about
	begun                    time.Time
	times                    []timed
}

// timed is how long a case took.
type timed struct {
	name string
	took time.Duration
}

// note counts a verdict and prints its line, if it has one.
func (t *tally) note(c *trial, v verdict) {
	name := c.source.name()
	t.times = append(t.times, timed{name, v.took})
	if v.cut && v.failure == "" {
		t.cut++
	}
	switch {
	case v.failure != "":
		t.failed++
		fmt.Fprintf(t.out, "FAIL %s: %s\n", name, v.failure)
	case v.from != nil:
		t.deviated++
		t.partly++
		fmt.Fprintf(t.out, "ours %s: %s from action %d on%s\n", name, v.from.row, v.from.action, cutNote(v))
	case v.deviates:
		t.deviated++
		fmt.Fprintf(t.out, "ours %s: %s", name, c.deviation.Row)
		if t.verbose {
			fmt.Fprintf(t.out, " (%s)", c.deviation.Reason)
		}
		fmt.Fprintln(t.out, cutNote(v))
	default:
		t.passed++
		if t.verbose {
			fmt.Fprintf(t.out, "ok   %s%s\n", name, cutNote(v))
		}
	}
}

// cutNote is what a case's line ends with when something of it was not to be compared.
func cutNote(v verdict) string {
	if !v.cut {
		return ""
	}
	return " (without the history that exit does not keep)"
}

// slowest is how many of the slowest cases a summary names.
const slowest = 5

// summary prints the last lines: how fast it went when begun is set, and what came of it.
func (t *tally) summary() {
	if !t.begun.IsZero() {
		took := time.Since(t.begun)
		slices.SortStableFunc(t.times, func(a, b timed) int { return cmp.Compare(b.took, a.took) })
		var worst []string
		for _, c := range t.times[:min(slowest, len(t.times))] {
			worst = append(worst, fmt.Sprintf("%s %.1fs", c.name, c.took.Seconds()))
		}
		fmt.Fprintf(t.out, "%.1f s, %.1f cases/s; slowest: %s\n", took.Seconds(), float64(len(t.times))/took.Seconds(),
			strings.Join(worst, ", "))
	}
	fmt.Fprintf(t.out, "%d passed, %d as we differ on purpose, %d failed, none skipped", t.passed, t.deviated, t.failed)
	if t.partly > 0 {
		fmt.Fprintf(t.out, "; %d compared until what we differ in came about", t.partly)
	}
	if t.cut > 0 {
		fmt.Fprintf(t.out, "; %d of them without the history that exit does not keep", t.cut)
	}
	fmt.Fprintln(t.out)
}
