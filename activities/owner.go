package activities

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// owner holds a task's lease, and what its heartbeats carry.
type owner struct {
	lease
	mode     graphadapter.Durability
	most     int // bytes of ledger
	journal  *graphadapter.MemoryJournal
	mu       sync.Mutex
	progress graphadapter.NodeProgress
}

func newOwner(c client.Client, info activity.Info, req graphadapter.NodeRequest, kept graphadapter.NodeProgress) (*owner, error) {
	kept.Accounted = min(kept.Accounted, info.Attempt-1) // an activity that was reset counts anew
	journal, err := graphadapter.NewMemoryJournal(kept.Ledger)
	if err != nil {
		return nil, err
	}
	o := &owner{mode: req.Durability, most: req.LedgerBytes, journal: journal, progress: kept}
	o.lease = lease{client: c, info: info, began: time.Now(), details: func() []any { return []any{o.details()} }}
	return o, nil
}

// defaultDetailBytes bounds a heartbeat's details when the request does not.
const defaultDetailBytes = 128 << 10

// details is what a heartbeat carries: in exit mode only life and the count of attempts, no record.
func (o *owner) details() graphadapter.NodeProgress {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.progress
	p.Ledger = nil
	if o.mode != graphadapter.DurabilityExit {
		p.Ledger = o.ledgerLocked()
	}
	p.Emitted = graphadapter.KeepEmitted(p.Emitted, cmp.Or(o.most, defaultDetailBytes)-len(p.Ledger))
	return p
}

// Entry implements graphadapter.Journal.
func (o *owner) Entry(key string) (ledger.Entry, bool) { return o.journal.Entry(key) }

// Entries implements graphadapter.Journal.
func (o *owner) Entries() []ledger.Entry { return o.journal.Entries() }

// Record implements graphadapter.Journal: in sync mode it returns once the entry is stored. In async and exit mode
// the entry leaves with a later heartbeat or the task's end, which is why a repeated task is suspect.
func (o *owner) Record(ctx context.Context, e ledger.Entry) error {
	if lost := o.lost(); lost != nil {
		return lost
	}
	if err := o.journal.Record(ctx, e); err != nil {
		return err
	}
	if size := len(o.ledger()); o.most > 0 && size > o.most {
		return graphadapter.Permanent(fmt.Errorf("the task's ledger has %d bytes, at most %d fit its heartbeats: record "+
			"smaller results, or split the node", size, o.most))
	}
	if o.mode == graphadapter.DurabilityAsync || o.mode == graphadapter.DurabilityExit {
		return nil
	}
	return o.send(ctx)
}

func (o *owner) ledger() pregel.Value {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ledgerLocked()
}

func (o *owner) ledgerLocked() pregel.Value {
	stored, err := graphadapter.EncodeLedger(o.journal.Entries())
	if err != nil {
		return nil
	}
	return stored
}
