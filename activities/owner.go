package activities

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// owner holds a task's lease, and what its heartbeats carry.
type owner struct {
	lease
	mode    graphadapter.Durability
	most    int // bytes of ledger that a heartbeat carries
	journal *graphadapter.MemoryJournal

	mu       sync.Mutex
	news     map[string]bool // the keys of what the request did not bring
	progress graphadapter.NodeProgress
}

// newOwner begins with what the request brings, and what earlier executions of it stored with their heartbeats.
func newOwner(c client.Client, info activity.Info, req graphadapter.NodeRequest, kept graphadapter.NodeProgress) (*owner, error) {
	kept.Losses = kept.Since(info.Attempt)
	kept.Returns = 0 // this execution has made nothing yet
	journal, err := taskrun.NewTaskJournal(&req.Task)
	if err != nil {
		return nil, err
	}
	_, between, err := graphadapter.DecodeCarryOver(req.Task.Ledger)
	if err != nil {
		return nil, err
	}
	if kept.Failures == 0 && kept.RetryAt.IsZero() {
		kept.Failures, kept.RetryAt, kept.Emitted = between.Failures, between.RetryAt, between.Emitted
	}
	o := &owner{mode: req.Durability, most: cmp.Or(req.LedgerBytes, defaultDetailBytes), journal: journal, progress: kept,
		news: map[string]bool{}}
	stored, err := graphadapter.DecodeLedger(kept.Ledger)
	if err != nil {
		return nil, err
	}
	journal.Add(stored...)
	for _, e := range stored {
		o.news[e.Key] = true
	}
	o.lease = lease{client: c, info: info, began: time.Now(), details: func() []any { return []any{o.details()} }}
	return o, nil
}

// defaultDetailBytes bounds a heartbeat's details when the request does not.
const defaultDetailBytes = 128 << 10

// details is what a heartbeat carries: what the request did not bring, as far as there is room for it; in exit mode only
// life and the count of attempts, no record.
func (o *owner) details() graphadapter.NodeProgress {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.progress
	p.Ledger, p.Losses = nil, p.Ran(time.Since(o.began))
	if o.mode != graphadapter.DurabilityExit {
		fitted, _ := graphadapter.FitLedger(o.newsLocked(), o.most)
		p.Ledger = encoded(fitted)
	}
	p.Emitted = taskrun.KeepEmitted(p.Emitted, o.most-len(p.Ledger))
	return p
}

// newsLocked are the entries that the request did not bring.
func (o *owner) newsLocked() []ledger.Entry {
	var news []ledger.Entry
	for _, e := range o.journal.Entries() {
		if o.news[e.Key] {
			news = append(news, e)
		}
	}
	return news
}

// Entry implements taskrun.Journal.
func (o *owner) Entry(key string) (ledger.Entry, bool) { return o.journal.Entry(key) }

// Entries implements taskrun.Journal.
func (o *owner) Entries() []ledger.Entry { return o.journal.Entries() }

// Record implements taskrun.Journal: in sync mode it returns once the entry is stored. In async and exit mode
// the entry leaves with a later heartbeat or the task's end, which is why a repeated task is suspect. What heartbeats
// have no room for leaves with the task's end, which therefore has to come: graphadapter.ErrYielded.
func (o *owner) Record(ctx context.Context, e ledger.Entry) error {
	if lost := o.lost(); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	whole, err := o.take(e)
	if err != nil {
		return err
	}
	if !o.relaxed() {
		if err := o.store(ctx); err != nil {
			return err
		}
	}
	if !whole {
		return graphadapter.ErrYielded
	}
	return nil
}

// relaxed reports whether records are not stored before the node goes on.
func (o *owner) relaxed() bool {
	return o.mode == graphadapter.DurabilityAsync || o.mode == graphadapter.DurabilityExit
}

// take puts an entry into the ledger; whole says that heartbeats carry all of it. An intent that none would carry is not
// taken: the call that it announces is not made.
func (o *owner) take(e ledger.Entry) (whole bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mode == graphadapter.DurabilityExit {
		o.put(e)
		return true, nil
	}
	news := slices.DeleteFunc(o.newsLocked(), func(n ledger.Entry) bool { return n.Key == e.Key })
	fitted, whole := graphadapter.FitLedger(append(news, e), o.most)
	if e.Kind == ledger.KindEffect || e.Kind == ledger.KindUndo {
		last := len(fitted) - 1
		noted := last >= 0 && fitted[last].Key == e.Key
		if !noted && e.State == ledger.StateIntent {
			return false, graphadapter.ErrYielded
		}
		// Parameters that a heartbeat has no room for are given again when the node is.
		whole = whole || noted && e.State == ledger.StateIntent
	}
	o.put(e)
	return whole, nil
}

func (o *owner) put(e ledger.Entry) {
	if _, known := o.journal.Entry(e.Key); !known && o.mode != graphadapter.DurabilityExit { // which stores none
		o.progress.Lost = o.progress.Lost || o.progress.Any(o.info.Attempt)
		o.progress.Losses = o.progress.Cleared(o.info.Attempt) // it came further than those before
	}
	o.journal.Add(e)
	o.news[e.Key] = true
}

// settling notes for which earlier call the compensation waits, and until when: whoever looks at the run sees it. The zero
// time means that it waits no more. A heartbeat that fails says so by itself.
func (o *owner) settling(ctx context.Context, e ledger.Entry, until time.Time) {
	o.mu.Lock()
	o.progress.Settling = nil
	if !until.IsZero() {
		o.progress.Settling = &graphadapter.Settling{Effect: e.Name, Key: e.Key, Until: until}
	}
	o.mu.Unlock()
	_ = o.store(ctx)
}

// hasNews reports whether there is something that the request did not bring.
func (o *owner) hasNews() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.news) > 0
}

// ledger is the whole of it, in its stored form.
func (o *owner) ledger() pregel.Value { return encoded(o.journal.Entries()) }

// encoded is the stored form of entries, all of which are JSON.
func encoded(entries []ledger.Entry) pregel.Value {
	stored, err := graphadapter.EncodeLedger(entries)
	if err != nil {
		panic("superstep: the entries of a ledger are always JSON: " + err.Error())
	}
	return stored
}
