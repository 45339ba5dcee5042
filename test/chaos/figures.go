package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"superstep.dev/internal/figures"
)

// compared are the figures of recovery: a worker tells each count as it makes it, so that a kill takes none along.
var compared = []*figures.Figure{figures.RecoveriesBegun, figures.Recoveries, figures.RecoveryTime, figures.Duplicates, figures.Takeovers}

// tellFigures is the metrics handler of a worker here.
type tellFigures struct{ tags map[string]string }

// WithTags implements client.MetricsHandler.
func (t tellFigures) WithTags(tags map[string]string) client.MetricsHandler {
	all := maps.Clone(t.tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, tags)
	return tellFigures{all}
}

// Counter implements client.MetricsHandler.
func (t tellFigures) Counter(name string) client.MetricsCounter { return figure{name, t.tags} }

// Gauge implements client.MetricsHandler.
func (t tellFigures) Gauge(name string) client.MetricsGauge { return figure{name, t.tags} }

// Timer implements client.MetricsHandler.
func (t tellFigures) Timer(name string) client.MetricsTimer { return figure{name, t.tags} }

type figure struct {
	name string
	tags map[string]string
}

func (f figure) isCompared() bool {
	return slices.ContainsFunc(compared, func(c *figures.Figure) bool { return c.Name == f.name })
}

// Inc implements client.MetricsCounter.
func (f figure) Inc(n int64) {
	if f.isCompared() {
		tell(notice{What: noticeFigure, Figure: strings.TrimSpace(f.name + " " + f.tags["outcome"]), N: n})
	}
}

// Update implements client.MetricsGauge.
func (f figure) Update(float64) {}

// Record implements client.MetricsTimer.
func (f figure) Record(d time.Duration) {
	if f.isCompared() {
		tell(notice{What: noticeFigure, Figure: f.name, N: 1, Took: d})
	}
}

// execution is one execution of a task or a segment, as the calls that its worker made to the server tell.
type execution struct {
	pid        int
	began      time.Time
	said, sign time.Time // when the last heartbeat was about to be sent, and the last that was stored; zero for none
	scheduled  time.Time // when the workflow scheduled the activity, for its first attempt
	closes     bool      // its worker was about to store that its end is known
	acts       bool      // its worker was about to store anything else of it, or its outcome
	ended      bool      // the server took its end
	wentOn     bool      // which was an outcome, or was to be
}

// books are what a crew's workers told of themselves, and what the calls that they made tell of them.
type books struct {
	counted    map[string]int64 // figures, with their outcome
	times      []time.Duration  // of figures.RecoveryTime
	executions map[string]map[int32]*execution
	killed     map[int]bool
	wentOn     map[int]time.Time // when a worker last counted a recovery that went on
}

func newBooks() *books {
	return &books{counted: map[string]int64{}, executions: map[string]map[int32]*execution{}, killed: map[int]bool{}, wentOn: map[int]time.Time{}}
}

// hear takes in what a worker says.
func (b *books) hear(n notice) {
	if n.What == noticeFigure {
		b.counted[n.Figure] += n.N
		switch n.Figure {
		case figures.RecoveryTime.Name:
			b.times = append(b.times, n.Took)
		case figures.Recoveries.Name + " went_on":
			b.wentOn[n.PID] = n.at()
		}
		return
	}
	if n.Activity == "" {
		return
	}
	all := b.executions[n.Activity]
	if all == nil {
		all = map[int32]*execution{}
		b.executions[n.Activity] = all
	}
	if n.What == noticeBegin {
		all[n.Attempt] = &execution{pid: n.PID, began: n.at(), scheduled: n.at().Add(-n.Took)}
	}
	e := all[n.Attempt]
	if e == nil {
		return
	}
	switch n.What {
	case noticeSigns:
		e.said, e.closes, e.acts = n.at(), e.closes || n.Closes, e.acts || !n.Closes
	case noticeSign:
		e.sign = n.at().Add(-n.Took)
	case noticeEnding:
		e.wentOn, e.acts = n.WentOn, e.acts || n.WentOn
	case noticeEnd:
		e.ended = true
	}
}

// between is a count of which the calls do not tell some for certain: a kill came in between.
type between struct{ least, most int64 }

func (c *between) add(certain bool) {
	c.most++
	if certain {
		c.least++
	}
}

func (c between) holds(n int64) bool { return c.least <= n && n <= c.most }

func (c between) String() string {
	if c.least == c.most {
		return fmt.Sprint(c.least)
	}
	return fmt.Sprintf("%d to %d", c.least, c.most)
}

const (
	// onTrial is the attempt from which on an execution may wait for its turn instead of running.
	onTrial = 4
	// heartbeatTimeout is that of tasks that stand alone.
	heartbeatTimeout = 2 * time.Second
	// apart is by how much the times may differ: what stands between the worker's count and the call that this program saw, on a
	// machine on which a dozen processes begin and end each second.
	apart = 400 * time.Millisecond
)

// silence is how long nobody heard of a task before another worker took over. A worker does not know when the execution before
// its own began: without a stored heartbeat it must reckon from what the server tells, which may be earlier or later. This program
// does not know whether the server has a heartbeat that got no reply.
type silence struct{ least, most time.Duration }

func silenceBefore(e, before *execution, attempt int32) silence {
	since := func(t time.Time) time.Duration { return e.began.Sub(later(before.began, t)) }
	s := silence{since(before.said), since(before.sign)}
	switch {
	case !before.sign.IsZero():
	case attempt == 2:
		s.most = max(s.most, e.began.Sub(e.scheduled))
	default:
		s.least = min(s.least, heartbeatTimeout)
	}
	return s
}

// recoveries counts anew, from the calls alone.
//
// A worker knows of the execution before its own what the server has of it: that one is lost unless a heartbeat was stored which
// says that its end is known. It counts the recovery before it tells the server anything of its own execution, but for one: that
// it gives the task back, which it may do at once, without a count.
//
// This program knows what a worker was about to tell, as the notice is written before the call, and which replies it had. A worker
// that died in a call, or stood still behind it, leaves open what the server has; and how far a worker came between two calls
// depends on the machine, so no time says what it had counted.
//
// So a recovery is certain where the execution before began and was never about to say that its end is known, and this one was about to
// say anything but that it gives the task back. It may be where the server handed a task out again.
func (b *books) recoveries() (begun, wentOn between, silences []silence) {
	for _, attempts := range b.executions {
		for attempt, e := range attempts {
			before, known := attempts[attempt-1]
			if attempt == 1 || known && before.ended && before.wentOn {
				continue
			}
			certain := known && !before.closes && e.acts && attempt < onTrial
			begun.add(certain)
			switch {
			case e.ended && e.wentOn:
				wentOn.add(certain)
			case !e.ended && (e.wentOn || b.killed[e.pid] && b.wentOn[e.pid].After(e.began)): // what was counted last may be its end
				wentOn.add(false)
			}
			if known {
				silences = append(silences, silenceBefore(e, before, attempt))
			} else {
				silences = append(silences, silence{0, e.began.Sub(e.scheduled)})
			}
		}
	}
	return begun, wentOn, silences
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// bounds are between what the nearest-rank percentile of counted times lies: each is one of these silences, but nobody knows of all
// silences whether they were counted. So many as were counted are at most as short as the shortest, and as long as the longest.
func bounds(silences []silence, counted, p int) silence {
	if counted == 0 || counted > len(silences) { // a count that is wrong is told as such
		return silence{0, time.Duration(math.MaxInt64) - apart}
	}
	var leasts, mosts []time.Duration
	for _, s := range silences {
		leasts, mosts = append(leasts, s.least), append(mosts, s.most)
	}
	slices.Sort(leasts)
	slices.Sort(mosts)
	at := rank(counted, p)
	return silence{leasts[at], mosts[at+len(silences)-counted]}
}

// compare holds what the workers counted against what this program counted, and says what is not equal.
func (b *books) compare(duplicates, takeovers int64) (line string, unequal []string) {
	begun, wentOn, silences := b.recoveries()
	say := func(what string, of int64, want between) {
		line += fmt.Sprintf(", %s %d (%s)", what, of, want)
		if !want.holds(of) {
			unequal = append(unequal, fmt.Sprintf("%s: the workers counted %d, the calls tell %s", what, of, want))
		}
	}
	say("recoveries begun", b.counted[figures.RecoveriesBegun.Name], begun)
	say("went on", b.counted[figures.Recoveries.Name+" went_on"], wentOn)
	say("duplicates", b.counted[figures.Duplicates.Name], between{duplicates, duplicates})
	say("takeovers", b.counted[figures.Takeovers.Name], between{takeovers, takeovers})
	for _, p := range []int{50, 95} {
		told, within := percentile(b.times, p), bounds(silences, len(b.times), p)
		line += fmt.Sprintf(", p%d %.2f s (%.2f to %.2f s)", p, told.Seconds(), within.least.Seconds(), within.most.Seconds())
		if told < within.least-apart || told > within.most+apart {
			unequal = append(unequal, fmt.Sprintf("p%d from loss to progress: the workers counted %v, the calls tell %v to %v",
				p, told, within.least, within.most))
		}
	}
	return strings.TrimPrefix(line, ", "), unequal
}

func printFigures(out io.Writer, line string, unequal []string) {
	fmt.Fprintf(out, "    figures of workers (of the calls): %s\n", line)
	for _, one := range unequal {
		fmt.Fprintf(out, "    not equal: %s\n", one)
	}
}
