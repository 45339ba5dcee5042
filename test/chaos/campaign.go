package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
)

const (
	patience = 5 * time.Minute // on a busy machine
	// barPause is what sync mode promises: from a kill to the next progress, 95th percentile.
	barPause = 5 * time.Second

	// notedKills is how many kills make a line for those who wait.
	notedKills = 50

	tableFormat = "%-8s %6v %6v %7v %5v %6v %8v %6v %7v %7v\n"
)

// campaign is what became of one mode.
type campaign struct {
	mode           mode
	runs           int
	kills, chosen  int
	lost           []string // runs that did not finish, with the reason
	twice, unequal []string
	again          int
	pauses         []time.Duration
	figures        string   // those of recovery, as the workers counted them
	miscounted     []string // those that are not what this program counted
}

// campaign runs threads in one mode while workers are killed, and then lets every thread end.
func (w *world) campaign(ctx context.Context, m mode, kills int, o options) (*campaign, error) {
	t, began := &campaign{mode: m}, time.Now()
	note := func(what string, args ...any) {
		fmt.Fprintf(w.notes, "%s, %3.0f s: %s\n", m.name, time.Since(began).Seconds(), fmt.Sprintf(what, args...))
	}
	crew := w.crew(fmt.Sprintf("chaos-%s-%d", m.name, time.Now().UnixNano()))
	c, err := superstep.NewClient(w.temporal, superstep.ClientConfig{TaskQueue: crew.queue})
	if err != nil {
		return nil, err
	}
	calm, err := crew.start(ctx)
	if err != nil {
		return nil, err
	}
	before, err := w.pay.Stats(ctx)
	if err != nil {
		return nil, err
	}
	l := &load{world: w, client: c, crew: crew, mode: m, result: t}
	if err := l.undisturbed(ctx); err != nil {
		return nil, fmt.Errorf("an undisturbed run: %w", err)
	}
	note("one run of each kind went well, now workers are killed")
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	weather, clear := context.WithCancel(ctx)
	var sky, people, killers sync.WaitGroup
	sky.Go(func() { w.weather(weather) })
	for range o.threads {
		people.Go(func() { l.run(ctx, stop) })
	}
	var left, killed, chosen atomic.Int64
	left.Store(int64(kills))
	for range o.workers {
		random := rand.New(rand.NewPCG(w.random.Uint64(), 0))
		killers.Go(func() {
			for left.Add(-1) >= 0 {
				atMoment, err := crew.life(ctx, random)
				if err != nil {
					stop(err)
					return
				}
				if atMoment {
					chosen.Add(1)
				}
				if n := killed.Add(1); n%notedKills == 0 {
					note("%d of %d kills", n, kills)
				}
			}
		})
	}
	killers.Wait()
	note("all killed, the last runs end")
	l.enough.Store(true)
	clear() // what is left to do may go well
	sky.Wait()
	err = w.pay.ClearFaults(ctx)
	people.Wait()
	if err := errors.Join(context.Cause(ctx), err); err != nil {
		return nil, err
	}
	t.kills, t.chosen = kills, int(chosen.Load())
	crew.mu.Lock()
	t.again, t.pauses = crew.again, crew.pauses
	t.figures, t.miscounted = crew.books.compare(int64(len(t.twice)), 0) // nobody is asked what became of a write here
	crew.mu.Unlock()
	if err := calm.Kill(); err != nil {
		return nil, err
	}
	after, err := w.pay.Stats(ctx)
	if err != nil {
		return nil, err
	}
	t.count(after, before)
	return t, nil
}

// count holds what the service did in all against what the runs that finished have to have done, the undisturbed
// ones included: one message each.
func (t *campaign) count(after, before payments.Stats) {
	told, runs := after.Notifications.Committed-before.Notifications.Committed, t.runs+len(kinds)
	if told != int64(runs) && len(t.lost) == 0 {
		t.twice = append(t.twice, fmt.Sprintf("%d runs told %d customers", runs, told))
	}
}

// weather makes the payments service slow, failing and late, until ctx ends.
func (w *world) weather(ctx context.Context) {
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for ctx.Err() == nil {
		for _, path := range []string{payments.PathRefunds, payments.PathNotifications} {
			f := payments.Faults{Path: path, SlowMS: 10 + random.Int64N(150)}
			switch random.IntN(12) {
			case 0:
				f.Fail5xx = 1
			case 1:
				f.HangAfterCommit = 1
			case 2:
				f.SlowMS = 2_500 // committed after the caller was given up, and another one looked it up
			}
			_ = w.pay.SetFaults(ctx, f) // the next one will
		}
		select {
		case <-time.After(400 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (t *campaign) broken() bool {
	return len(t.lost)+len(t.twice)+len(t.unequal)+len(t.miscounted) > 0 || t.slow()
}

func (t *campaign) slow() bool { return t.mode.name == "sync" && t.percentile(95) > barPause }

func (t *campaign) percentile(p int) time.Duration { return percentile(t.pauses, p) }

// percentile is the nearest-rank percentile.
func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[rank(len(sorted), p)]
}

// rank is the place of the nearest-rank percentile among n sorted values.
func rank(n, p int) int { return (n*p+99)/100 - 1 }

func (t *campaign) print(out io.Writer) {
	fmt.Fprintf(out, tableFormat, t.mode.name, t.runs, t.kills, t.chosen, len(t.lost), len(t.twice), len(t.unequal), t.again,
		fmt.Sprintf("%.2f", t.percentile(50).Seconds()), fmt.Sprintf("%.2f", t.percentile(95).Seconds()))
	for what, all := range map[string][]string{"lost": t.lost, "twice": t.twice, "unequal": t.unequal} {
		for _, one := range all {
			fmt.Fprintf(out, "    %s: %s\n", what, one)
		}
	}
	printFigures(out, t.figures, t.miscounted)
	if t.slow() {
		fmt.Fprintf(out, "    the pause after a kill is to be %v at most, 95th percentile\n", barPause)
	}
}
