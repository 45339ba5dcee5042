package taskrun

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// Store is where an [Outbox] is stored while its task runs: in the heartbeats of the task's own activity, or in those of
// a segment. It is safe for concurrent use.
type Store interface {
	// Keep makes durable what the outboxes hold. In sync mode nil means that they are stored; in the other modes storing may
	// follow. After an error nobody knows, and [graphadapter.ErrFenced] says that another execution owns the task.
	Keep(ctx context.Context) error
	// Room is how many bytes of an outbox's news the next heartbeat has room for.
	Room(o *Outbox) int
	// Holds reports whether this process waits that long for a task's next attempt; otherwise the task is given back.
	// failed says that an attempt has failed just now: a store that holds the task has made its count durable.
	Holds(ctx context.Context, wait time.Duration, failed bool) bool
	// Leaving is closed when tasks that wait are to be given back; nil for never.
	Leaving() <-chan struct{}
	// Now is the clock of graphadapter.CarryOver.RetryAt.
	Now() time.Time
}

// Outbox is the journal of one task, and the count of its attempts: what the next execution of the task has to know. An
// entry is in its [Store] before the task goes on, so an effect is called only when its intent is stored. It is safe for
// concurrent use.
type Outbox struct {
	graphadapter.MemoryJournal
	task  *pregel.Task
	store Store // nil: the outbox lasts as long as this process
	exit  bool  // heartbeats carry no entries

	mu       sync.Mutex
	news     map[string]bool // the keys of entries that the task was not handed out with; nil for none
	size     int             // at least the bytes of those entries
	full     bool            // heartbeats have no room for all of them
	further  bool            // this execution recorded an entry that none before it had
	between  graphadapter.CarryOver
	returned bool // the task is given back before its next attempt
}

// OpenOutbox returns the outbox of a task with what the task was handed out with, and with left, the [Outbox.News] of an
// execution before; nil for none. Without a store the outbox lasts as long as this process.
func OpenOutbox(task *pregel.Task, left pregel.Value, store Store, mode graphadapter.Durability) (*Outbox, error) {
	o := &Outbox{task: task, store: store, exit: mode == graphadapter.DurabilityExit}
	entries, between, err := graphadapter.DecodeCarryOver(task.Ledger)
	if err != nil {
		return nil, err
	}
	o.Add(entries...)
	if err := o.addKept(task); err != nil {
		return nil, err
	}
	if left != nil {
		if entries, between, err = graphadapter.DecodeCarryOver(left); err != nil {
			return nil, err
		}
		for _, e := range entries {
			o.put(e)
		}
	}
	o.between = between
	return o, nil
}

// addKept adds what the thread keeps under the thread-wide keys that the task owns.
func (o *Outbox) addKept(task *pregel.Task) error {
	for _, key := range slices.Sorted(maps.Keys(task.Kept)) {
		if pregel.IsNull(task.Kept[key]) {
			continue
		}
		var e ledger.Entry
		if err := json.Unmarshal(task.Kept[key], &e); err != nil {
			return fmt.Errorf("superstep: decode what the thread keeps under the key %s: %w", key, err)
		}
		// The task's own entry says more of the same call: a thread keeps no large results.
		if own, ok := o.Entry(key); !ok || own.State != e.State {
			o.Add(e)
		}
	}
	return nil
}

// Record implements [Journal]. An entry that heartbeats have no room for is stored with the task's end, which therefore
// has to come: [graphadapter.ErrYielded].
func (o *Outbox) Record(ctx context.Context, e ledger.Entry) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	whole, err := o.take(e)
	if err != nil || o.store == nil {
		return err
	}
	if err := o.store.Keep(ctx); err != nil {
		return err
	}
	if !whole {
		return graphadapter.ErrYielded
	}
	return nil
}

// take puts in an entry; whole says that heartbeats carry all news. An intent that no heartbeat would carry is not taken:
// the call that it announces is not made.
func (o *Outbox) take(e ledger.Entry) (whole bool, err error) {
	room := math.MaxInt
	if o.store != nil && !o.exit {
		room = max(o.store.Room(o), 0)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	whole = true
	if room < math.MaxInt {
		news := slices.DeleteFunc(o.newEntries(), func(n ledger.Entry) bool { return n.Key == e.Key })
		var fitted []ledger.Entry
		fitted, whole = graphadapter.FitLedger(append(news, e), room)
		if e.Outside() && e.State == ledger.StateIntent {
			if last := len(fitted) - 1; last < 0 || fitted[last].Key != e.Key {
				o.full = true
				return false, graphadapter.ErrYielded
			}
			whole = true // parameters that a heartbeat has no room for are given again when the node is
		}
	}
	o.full = o.full || !whole
	_, known := o.Entry(e.Key)
	o.further = o.further || !known
	o.put(e)
	return whole, nil
}

func (o *Outbox) put(e ledger.Entry) {
	o.Add(e)
	if o.news == nil {
		o.news = map[string]bool{}
	}
	o.news[e.Key] = true
	o.size += graphadapter.EntrySize(e)
}

// newEntries are the entries that the task was not handed out with; o.mu is held.
func (o *Outbox) newEntries() []ledger.Entry {
	if len(o.news) == 0 {
		return nil
	}
	return slices.DeleteFunc(o.Entries(), func(e ledger.Entry) bool { return !o.news[e.Key] })
}

// News is what the next execution has to know and its task does not bring: new entries and the count of attempts, as much
// of them as has that many bytes, in the form of a stored ledger; nil for nothing.
func (o *Outbox) News(most int) pregel.Value {
	o.mu.Lock()
	defer o.mu.Unlock()
	entries, _ := graphadapter.FitLedger(o.newEntries(), most)
	return o.stored(entries, most)
}

// Beat is News as a heartbeat of the task's own activity carries them: in exit mode without entries.
func (o *Outbox) Beat(most int) pregel.Value {
	if !o.exit {
		return o.News(most)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stored(nil, most)
}

func (o *Outbox) stored(entries []ledger.Entry, most int) pregel.Value {
	between, left := o.between, most-graphadapter.LedgerFrame-len(o.between.Failed)
	for _, e := range entries {
		left -= graphadapter.EntrySize(e)
	}
	between.Emitted = KeepEmitted(between.Emitted, max(left, 0))
	v, _ := graphadapter.EncodeCarryOver(entries, between) // entries are JSON; the task's end says which are nested too deep
	return v
}

// Ledger is all that the task did, in its stored form.
func (o *Outbox) Ledger() pregel.Value {
	v, _ := graphadapter.EncodeLedger(o.Entries()) // as in stored
	return v
}

// HasNews reports whether there is an entry that the task was not handed out with.
func (o *Outbox) HasNews() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.news) > 0
}

// IsFurther reports whether this execution has recorded an entry that none before it had.
func (o *Outbox) IsFurther() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.further
}

// Pressure is how many bytes the news take at most, and whether heartbeats have no room for all of them.
func (o *Outbox) Pressure() (size int, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size, o.full
}

// CarryOver is what the task's attempts leave to its next execution.
func (o *Outbox) CarryOver() graphadapter.CarryOver {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.between
}

// Attempt is the number of the attempt under way, or of the next one, as the node's retry policy counts: from 1. Lost
// workers do not count.
func (o *Outbox) Attempt() int { return o.CarryOver().Failures + 1 }

// Fail counts a failed attempt; emitted is what this attempt and those before it streamed. Fail reports whether this
// process makes the next attempt.
func (o *Outbox) Fail(ctx context.Context, wait time.Duration, failure *pregel.NodeError, emitted []pregel.Emission) bool {
	o.mu.Lock()
	o.between.Failures++
	o.between.Failed = failure.Type + ": " + failure.Error()
	o.between.Emitted, o.between.RetryAt = emitted, time.Time{}
	if wait > 0 {
		o.between.RetryAt = o.now().Add(wait)
	}
	o.mu.Unlock()
	return o.store == nil || o.store.Holds(ctx, wait, true) || o.giveBack()
}

func (o *Outbox) now() time.Time {
	if o.store == nil {
		return time.Now()
	}
	return o.store.Now()
}

// Wait is how long the task has to wait for its next attempt, 0 for not at all.
func (o *Outbox) Wait() time.Duration {
	at := o.CarryOver().RetryAt
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(o.now()), 0)
}

// pause waits until the next attempt may begin. It reports false when ctx ended first, or the task is given back.
func (o *Outbox) pause(ctx context.Context) bool {
	wait, leaving := o.Wait(), (<-chan struct{})(nil)
	if o.IsReturned() {
		return false
	}
	if wait > 0 && o.store != nil {
		if leaving = o.store.Leaving(); !o.store.Holds(ctx, wait, false) {
			return o.giveBack()
		}
	}
	if wait == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-leaving:
		return o.giveBack()
	case <-ctx.Done():
		return false
	}
}

// Yield is the outcome of a task that is given back with these entries. begun says that it is given back in the middle of
// an attempt, which has not failed then, and whose stream is void; suspect and lost are those of [Info].
func (o *Outbox) Yield(entries []ledger.Entry, begun, suspect, lost bool) (pregel.Outcome, error) {
	left := o.CarryOver()
	left.Suspect, left.Lost = suspect, lost
	if begun {
		left.Begun, left.RetryAt, left.Failed = true, time.Time{}, ""
	}
	if o.store != nil {
		left.Emitted = KeepEmitted(left.Emitted, max(o.store.Room(o), 0))
	}
	stored, err := graphadapter.EncodeCarryOver(entries, left)
	return pregel.Outcome{Yielded: true, Ledger: stored, Kept: KeptOf(o.task, entries), Spent: SpentOf(o.task, entries)}, err
}

func (o *Outbox) giveBack() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.returned = true
	return false
}

// IsReturned reports whether the task is given back before its next attempt.
func (o *Outbox) IsReturned() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.returned
}
