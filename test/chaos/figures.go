package main

import (
	"fmt"
	"io"
	"maps"
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
	pid         int
	began, sign time.Time // sign is when the last heartbeat that was stored was sent; zero for none
	scheduled   time.Time // when the workflow scheduled the activity, for its first attempt
	ending      time.Time // when its worker was about to report its end
	ended       bool      // the server took that
	wentOn      bool      // it was an outcome
}

// books are what a crew's workers told of themselves, and what the calls that they made tell of them.
type books struct {
	counted    map[string]int64 // figures, with their outcome
	times      []time.Duration  // of figures.RecoveryTime
	executions map[string]map[int32]*execution
	killed     map[int]time.Time
	wentOn     map[int]time.Time // when a worker last counted a recovery that went on
}

func newBooks() *books {
	return &books{counted: map[string]int64{}, executions: map[string]map[int32]*execution{}, killed: map[int]time.Time{}, wentOn: map[int]time.Time{}}
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
	case noticeSign:
		e.sign = n.at().Add(-n.Took)
	case noticeEnding:
		e.ending, e.wentOn = n.at(), n.WentOn
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
	// young is how long a worker has to live after it was given an execution until it has certainly counted that.
	young = 200 * time.Millisecond
	// atOnce is how long before its kill a worker may have counted what it could not report any more: so long a busy machine may
	// keep it from its processor in between.
	atOnce = 100 * time.Millisecond
	// onTrial is the attempt from which on an execution may wait for its turn instead of running.
	onTrial = 4
	// heartbeatTimeout is that of tasks that stand alone.
	heartbeatTimeout = 2 * time.Second
	// apart is by how much the times may differ: what stands between the worker's count and the call that this program saw, on a
	// machine on which a dozen processes begin and end each second.
	apart = 400 * time.Millisecond
)

// silence is how long nobody heard of a task before another worker took over. A worker does not know when the execution before
// its own began: without a stored heartbeat it must reckon from what the server tells, which may be earlier or later.
type silence struct{ least, most time.Duration }

func silenceBefore(e, before *execution, attempt int32) silence {
	heard := e.began.Sub(later(before.began, before.sign))
	switch {
	case !before.sign.IsZero():
		return silence{heard, heard}
	case attempt == 2:
		return silence{heard, e.began.Sub(e.scheduled)}
	}
	return silence{min(heard, heartbeatTimeout), heard}
}

// recoveries counts anew, from the calls alone.
func (b *books) recoveries() (begun, wentOn between, silences []silence) {
	for _, attempts := range b.executions {
		for attempt, e := range attempts {
			before, known := attempts[attempt-1]
			if attempt == 1 || known && before.ended && before.wentOn {
				continue
			}
			killed, dead := b.killed[e.pid]
			// An end that gives the task back is no loss, but counts as one if the heartbeat that says so was not stored.
			unsure := !known || !before.ending.IsZero() && !before.wentOn || attempt >= onTrial
			counted := !e.ending.IsZero() || !e.sign.IsZero() || !dead || killed.Sub(e.began) > young
			begun.add(!unsure && counted)
			switch {
			case e.ended && e.wentOn:
				wentOn.add(!unsure)
			case !e.ended && e.wentOn, !e.ended && dead && within(killed.Sub(b.wentOn[e.pid]), atOnce):
				wentOn.add(false)
			}
			if known && !before.ended {
				silences = append(silences, silenceBefore(e, before, attempt))
			}
		}
	}
	return begun, wentOn, silences
}

func within(d, most time.Duration) bool { return d >= -most && d <= most }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// compare holds what the workers counted against what this program counted, and says what is not equal.
func (b *books) compare(duplicates, takeovers int64) (line string, unequal []string) {
	begun, wentOn, silences := b.recoveries()
	var leasts, mosts []time.Duration
	for _, s := range silences {
		leasts, mosts = append(leasts, s.least), append(mosts, s.most)
	}
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
		told, least, most := percentile(b.times, p), percentile(leasts, p), percentile(mosts, p)
		line += fmt.Sprintf(", p%d %.2f s (%.2f to %.2f s)", p, told.Seconds(), least.Seconds(), most.Seconds())
		if told < least-apart || told > most+apart {
			unequal = append(unequal, fmt.Sprintf("p%d from loss to progress: the workers counted %v, the calls tell %v to %v", p, told, least, most))
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
