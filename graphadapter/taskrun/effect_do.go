package taskrun

import (
	"context"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

func (c *effectCall) check(receipt pregel.Value) error {
	if c.effect.Check == nil {
		return nil
	}
	return c.effect.Check(c.entry.Params, receipt)
}

func (c *effectCall) do(ctx context.Context) (pregel.Value, error) {
	ctx, end := inCall(ctx, c.timeout, c.t.env.Lease)
	defer end()
	if err := ctx.Err(); err != nil { // the execution stood still before it came to this
		return nil, context.Cause(ctx)
	}
	receipt, err := c.effect.Do(ctx, c.entry.Key, c.entry.Params)
	if err != nil {
		return nil, late(ctx, c.timeout, err)
	}
	return receipt, nil
}

// confirm makes sure that the task was this execution's a moment ago. What a target does twice must not be asked by an
// execution that was frozen before it could tell the server anything.
func (c *effectCall) confirm(ctx context.Context) error {
	if c.t.env.Lease == nil || c.effect.Target == ledger.TargetKeyed {
		return nil
	}
	return c.t.env.Lease.Confirm(ctx)
}

// returned records that a call has come back, for an effect that tells calls that failed from calls that were lost. One
// of which this cannot be recorded counts as lost.
func (c *effectCall) returned(ctx context.Context) {
	if c.effect.AfterLoss == ledger.LossAsk {
		_ = c.record(ctx, c.entry.Return())
	}
}

// before is what is known of the executions before this one.
func (c *effectCall) before() ledger.Earlier {
	switch {
	case c.t.info.Lost, c.mayStillArrive:
		return ledger.EarlierLost
	case c.t.info.Suspect:
		return ledger.EarlierUncertain
	}
	return ledger.EarlierNone
}
