package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// owner is the one place where an execution's heartbeats are sent. Every heartbeat blocks until it is stored and
// carries the newest progress, so a later one never takes back what an earlier one stored. The SDK's own throttled
// heartbeats are never mixed in.
type owner struct {
	client   client.Client
	info     activity.Info
	mode     graphadapter.Durability
	most     int // bytes of ledger
	journal  *graphadapter.MemoryJournal
	sending  sync.Mutex // one heartbeat at a time
	mu       sync.Mutex
	progress graphadapter.NodeProgress
	began    time.Time   // when the execution began, which is a heartbeat to the server
	expiry   *time.Timer // ends the node's context before the server gives the task away
	lostWhy  error       // why the task is no longer ours
	cancel   context.CancelCauseFunc
}

func newOwner(c client.Client, info activity.Info, req graphadapter.NodeRequest, kept graphadapter.NodeProgress) (*owner, error) {
	kept.Accounted = min(kept.Accounted, info.Attempt-1) // an activity that was reset counts anew
	journal, err := graphadapter.NewMemoryJournal(kept.Ledger)
	if err != nil {
		return nil, err
	}
	return &owner{client: c, info: info, mode: req.Durability, most: req.LedgerBytes, journal: journal, progress: kept,
		began: time.Now()}, nil
}

// hold beats until released, from a third of the heartbeat timeout on: a short node pays nothing. The returned context
// ends when the task is no longer ours.
func (o *owner) hold(ctx context.Context) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	o.mu.Lock()
	o.cancel = cancel
	if o.info.HeartbeatTimeout > 0 {
		o.expiry = time.AfterFunc(o.leaseFrom(o.began), func() { o.lose(graphadapter.ErrFenced) })
	}
	o.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.beat(held)
	}()
	return held, func() {
		cancel(nil)
		<-ended
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.expiry != nil {
			o.expiry.Stop()
		}
	}
}

// leaseFrom is how long the task is certainly ours after a heartbeat that was sent at that time. The server gives the
// task away one timeout after it stored the last one; the node stops a tenth of it before.
func (o *owner) leaseFrom(sent time.Time) time.Duration {
	return o.info.HeartbeatTimeout*9/10 - time.Since(sent)
}

func (o *owner) beat(ctx context.Context) {
	timeout := o.info.HeartbeatTimeout
	if timeout <= 0 {
		return
	}
	tick := time.NewTicker(timeout / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// One that fails is followed by the next; without any that succeeds the lease runs out.
			_ = o.send(ctx)
		}
	}
}

// send stores the newest progress. An error means that it may not be stored.
func (o *owner) send(ctx context.Context) error {
	o.sending.Lock()
	defer o.sending.Unlock()
	o.mu.Lock()
	details, lost := o.details(), o.lostWhy
	o.mu.Unlock()
	if lost != nil && !isSuspended(lost) {
		return lost
	}
	bound := o.info.HeartbeatTimeout / 2
	if bound <= 0 {
		bound = time.Second
	}
	sendCtx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	sent := time.Now()
	err := o.client.RecordActivityHeartbeat(sendCtx, o.info.TaskToken, details)
	return o.heard(sent, err)
}

// defaultDetailBytes bounds a heartbeat's details when the request does not.
const defaultDetailBytes = 128 << 10

// details is what a heartbeat carries: in exit mode only life and the count of attempts, no record.
func (o *owner) details() graphadapter.NodeProgress {
	p := o.progress
	p.Ledger = nil
	if o.mode != graphadapter.DurabilityExit {
		p.Ledger = o.ledgerLocked()
	}
	p.Emitted = graphadapter.KeepEmitted(p.Emitted, cmp.Or(o.most, defaultDetailBytes)-len(p.Ledger))
	return p
}

// heard reads the server's reply to a heartbeat. Cancelled, paused and reset mean: stored, now stop. Not found means
// that another execution owns the task, or that the run is over.
func (o *owner) heard(sent time.Time, err error) error {
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.expiry != nil && o.lostWhy == nil {
			o.expiry.Reset(o.leaseFrom(sent))
		}
		return nil
	case isCancelled(err), isSuspended(err):
		o.lose(err)
		return nil
	case errors.As(err, &gone):
		o.lose(graphadapter.ErrFenced)
		return graphadapter.ErrFenced
	default:
		return fmt.Errorf("the heartbeat was not confirmed: %w", err)
	}
}

// lose ends the node's context: the task is no longer ours.
func (o *owner) lose(why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lostWhy == nil {
		o.lostWhy = why
	}
	if o.cancel != nil {
		o.cancel(why)
	}
}

// Entry implements graphadapter.Journal.
func (o *owner) Entry(key string) (ledger.Entry, bool) { return o.journal.Entry(key) }

// Entries implements graphadapter.Journal.
func (o *owner) Entries() []ledger.Entry { return o.journal.Entries() }

// Record implements graphadapter.Journal: in sync mode it returns once the entry is stored. In async and exit mode
// the entry leaves with a later heartbeat or the task's end, which is why a repeated task is suspect.
func (o *owner) Record(ctx context.Context, e ledger.Entry) error {
	o.mu.Lock()
	lost := o.lostWhy
	o.mu.Unlock()
	if lost != nil {
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
