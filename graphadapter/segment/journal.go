package segment

import (
	"context"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
)

// Entry implements [Journal].
func (t *segmentTask) Entry(key string) (ledger.Entry, bool) { return t.journal.Entry(key) }

// Entries implements [Journal].
func (t *segmentTask) Entries() []ledger.Entry { return t.journal.Entries() }

// Record implements [Journal]: in sync mode it returns when the entry is durable. What heartbeats have no room for leaves
// with the task's end, which therefore has to come: [ErrYielded].
func (t *segmentTask) Record(ctx context.Context, e ledger.Entry) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	whole, taken := t.take(e, t.of.room()-t.of.othersNews(t))
	t.over.Store(t.over.Load() || !whole)
	if !taken {
		return graphadapter.ErrYielded
	}
	if t.of.host.Keep != nil {
		if err := t.of.host.Keep(ctx); err != nil {
			return err
		}
	}
	if !whole {
		return graphadapter.ErrYielded
	}
	return nil
}

// othersNews is how much of a heartbeat the other tasks take.
func (s *Segment) othersNews(t *segmentTask) (size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.under {
		if other != t && !other.over.Load() {
			size += int(other.size.Load())
		}
	}
	return size
}

// take puts an entry into the ledger; whole says that heartbeats, which have that much room for it, carry all that is
// new. An intent that none would carry is not taken: the call that it announces is not made.
func (t *segmentTask) take(e ledger.Entry, room int) (whole, taken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := slices.DeleteFunc(t.newEntries(), func(n ledger.Entry) bool { return n.Key == e.Key })
	fitted, whole := graphadapter.FitLedger(append(news, e), max(room, 0))
	if t.of.req.Durability == graphadapter.DurabilityExit {
		whole = true // no heartbeat carries any
	} else if e.Kind == ledger.KindEffect {
		last := len(fitted) - 1
		noted := last >= 0 && fitted[last].Key == e.Key
		if !noted && e.State == ledger.StateIntent {
			return false, false
		}
		// Parameters that a heartbeat has no room for are given again when the node is.
		whole = whole || noted && e.State == ledger.StateIntent
	}
	t.journal.Add(e)
	delete(t.brought, e.Key)
	t.size.Add(int64(graphadapter.EntrySize(e)))
	return whole, true
}
