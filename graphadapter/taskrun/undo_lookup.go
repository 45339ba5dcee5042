package taskrun

import (
	"context"
	"fmt"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// lookUp asks the outside about the effect. What fails for long is no clear answer.
func (u *undo) lookUp(ctx context.Context) error {
	u.finding, u.note, u.found = ledger.FindingUnknown, "", nil
	var f graphadapter.Finding
	var err error
	for try := 1; ; try++ {
		f, err = lookUp(ctx, graphadapter.DefaultCallTimeout, u.env.Lease, &u.effect, &u.of.Effect)
		if err == nil || graphadapter.IsPermanent(err) || try == maxUndoCalls {
			break
		}
		if ctx.Err() != nil || !pause(ctx, u.pauseAfter(try)) {
			return context.Cause(ctx)
		}
	}
	if err != nil {
		u.note = fmt.Sprintf("the outside could not be asked: %v", err)
		return nil
	}
	u.finding, u.note = f.Status, f.Note
	if f.Receipt != nil && !pregel.IsNull(f.Receipt) {
		u.found = f.Receipt
	}
	return nil
}

// lookUpSettled looks up again once no earlier call can still be under way unseen; the same answer then is believed.
func (u *undo) lookUpSettled(ctx context.Context) error {
	before := u.finding
	if err := u.settle(ctx); err != nil {
		return err
	}
	if err := u.lookUp(ctx); err != nil {
		return err
	}
	if u.partly && u.finding == ledger.FindingPartial {
		u.finding = ledger.FindingCommitted
	}
	switch {
	case u.finding != before:
	case before == ledger.FindingCommitted:
		u.finding = ledger.FindingStillCommitted
	case before == ledger.FindingNotFound:
		u.finding = ledger.FindingStillNotFound
	}
	return nil
}

// settle waits until no earlier call can still be under way unseen, and tells who looks at the run until when.
func (u *undo) settle(ctx context.Context) error {
	wait := u.settledAfter()
	if u.env.Settling != nil {
		u.env.Settling(time.Now().Add(wait))
		defer u.env.Settling(time.Time{})
	}
	if u.env.wait != nil {
		return u.env.wait(ctx, wait)
	}
	if !pause(ctx, wait) {
		return context.Cause(ctx)
	}
	return nil
}
