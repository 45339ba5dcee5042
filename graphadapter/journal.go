package graphadapter

import (
	"context"
	"math"
	"sync"
	"time"

	"superstep.dev/graphadapter/ledger"
)

// MemoryJournal is a [Journal] in this process: it is as durable as the process. It is safe for concurrent use.
type MemoryJournal struct {
	mu      sync.Mutex
	at      map[string]int // in entries; nil while there are none
	entries []ledger.Entry
}

// Add puts in entries that are durable elsewhere, replacing those of the same keys.
func (j *MemoryJournal) Add(entries ...ledger.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range entries {
		j.put(e)
	}
}

// Entry returns the entry of that key.
func (j *MemoryJournal) Entry(key string) (ledger.Entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i, ok := j.at[key]
	if !ok {
		return ledger.Entry{}, false
	}
	return j.entries[i], true
}

// Record stores an entry. It fails only with the cause of a context that is done.
func (j *MemoryJournal) Record(ctx context.Context, e ledger.Entry) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.put(e)
	return nil
}

// Entries returns all entries in the order in which they were first recorded.
func (j *MemoryJournal) Entries() []ledger.Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]ledger.Entry(nil), j.entries...)
}

func (j *MemoryJournal) put(e ledger.Entry) {
	if i, ok := j.at[e.Key]; ok {
		j.entries[i] = e
		return
	}
	if j.at == nil {
		j.at = map[string]int{}
	}
	j.at[e.Key] = len(j.entries)
	j.entries = append(j.entries, e)
}

// Losses is what is known of an activity's executions that were lost with their workers. An activity that kills its worker
// takes others along, which look the same from outside. So the first losses in a row count for each; after those an
// activity is on trial: of all that are on trial a worker runs one at a time, which says so before it begins. What is lost
// while it waits for that, or is given back, has not killed anybody.
type Losses struct {
	// Accounted is the last execution whose end is known, or that came further than those before: those after it were lost.
	Accounted int32 `json:"accounted,omitempty"`
	// Trials counts those of them that ran on trial.
	Trials int32 `json:"trials,omitempty"`
	// Longest is how long the longest execution ran that did not come to an end, as far as heartbeats told, in milliseconds.
	Longest int64 `json:"longest_ms,omitempty"`
}

// MostLosses is how many executions in a row may be lost before a person is asked.
const MostLosses = 10

const (
	// freeLosses is how many are lost in a row before an activity is on trial.
	freeLosses = 3
	// leastTrial is the least time on trial after which an activity has not killed its worker.
	leastTrial = 3 * time.Second
)

// lost are the executions before this one, the attempt of that number, of which nobody knows the end.
func (l Losses) lost(attempt int32) int32 { return max(attempt-1-l.Accounted, 0) }

// Since returns what is left of l for an execution: an activity that was reset counts its attempts anew.
func (l Losses) Since(attempt int32) Losses {
	l.Accounted = min(l.Accounted, attempt-1)
	l.Trials = min(l.Trials, max(l.lost(attempt)-freeLosses, 0))
	return l
}

// Any reports whether an execution in a row before this one was lost.
func (l Losses) Any(attempt int32) bool { return l.lost(attempt) > 0 }

// Counted is how many losses in a row count against the activity.
func (l Losses) Counted(attempt int32) int {
	return int(min(l.lost(attempt), freeLosses) + l.Since(attempt).Trials)
}

// OnTrial reports whether this execution is to run on trial.
func (l Losses) OnTrial(attempt int32) bool { return l.lost(attempt) >= freeLosses }

// TrialTime is how long it then has to run until it is clear that it does not kill its worker: twice as long as any that
// was lost.
func (l Losses) TrialTime() time.Duration { return max(leastTrial, 2*Milliseconds(l.Longest)) }

// Tried returns l with this execution on trial.
func (l Losses) Tried() Losses {
	l.Trials++
	return l
}

// Cleared returns l without the executions before this one: it came further, or has run on trial long enough.
func (l Losses) Cleared(attempt int32) Losses {
	if before := attempt - 1; l.Accounted < before {
		l.Accounted, l.Trials = before, 0
	}
	return l
}

// Ended returns l when the end of this execution is known.
func (l Losses) Ended(attempt int32) Losses { return Losses{Accounted: attempt} }

// Ran returns l with how long this execution has run so far.
func (l Losses) Ran(d time.Duration) Losses {
	l.Longest = max(l.Longest, d.Milliseconds())
	return l
}

// Milliseconds is a stored number of them; one that is too large stands for the longest time.
func Milliseconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
