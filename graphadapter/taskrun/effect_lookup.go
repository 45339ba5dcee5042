package taskrun

import (
	"context"
	"fmt"
	"strings"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// lookUp asks the target and keeps what it says.
func (c *effectCall) lookUp(ctx context.Context) error {
	f, err := lookUp(ctx, c.timeout, c.t.env.Lease, &c.effect, &c.entry)
	if err != nil {
		return c.failed("look up", err)
	}
	c.found(f)
	return nil
}

// lookUp asks the target of an effect about the write of an entry, no longer than a call may take. A receipt that does not
// fit is that of a partial write, and a target that says nothing says nothing clear.
func lookUp(ctx context.Context, most time.Duration, lease Lease, effect *graphadapter.Effect, of *ledger.Entry) (graphadapter.Finding, error) {
	if effect.Lookup == nil {
		return graphadapter.Finding{Status: ledger.FindingUnknown, Note: "the effect has no Lookup"}, nil
	}
	f, err := inTime(ctx, most, lease, func(ctx context.Context) (graphadapter.Finding, error) {
		return effect.Lookup(ctx, of.Key, of.Params)
	})
	if err != nil {
		return f, err
	}
	if f.Receipt, err = jsontext.Compact(f.Receipt); err != nil {
		return f, fmt.Errorf("the receipt is not JSON: %w", err)
	}
	if f.Status == ledger.FindingCommitted && effect.Check != nil {
		if err := effect.Check(of.Params, f.Receipt); err != nil {
			f.Status, f.Note = ledger.FindingPartial, "the receipt that was found does not fit: "+err.Error()
		}
	}
	if f.Status == ledger.FindingNone {
		f.Status = ledger.FindingUnknown
	}
	return f, nil
}

// lookUpSettled looks up again once no earlier call can still be under way unseen.
func (c *effectCall) lookUpSettled(ctx context.Context) error {
	wait := c.timeout + c.settle
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return c.failed("wait for an earlier call", fmt.Errorf("an earlier call may need %v to show (call timeout plus "+
			"settle time), but the attempt ends before: raise the node's run timeout above that", wait))
	}
	defer c.t.idle.hold()()
	if err := c.t.env.Outside.wait(ctx, wait); err != nil {
		return err
	}
	if err := c.lookUp(ctx); err != nil {
		return err
	}
	if c.finding == ledger.FindingNotFound {
		c.finding = ledger.FindingStillNotFound
	}
	return nil
}

func (c *effectCall) found(f graphadapter.Finding) {
	c.finding, c.receipt, c.reason = f.Status, f.Receipt, f.Note
}

// probe asks the target before the first call with a thread-wide key: another task of the thread may have called, in a
// run that was terminated before the thread heard of it. Shortly after such a run its call may still be under way, so what
// is not found goes by the target's guarantee; otherwise the call is made as one that nobody made before.
func (c *effectCall) probe(ctx context.Context) error {
	if !c.entry.ThreadWide || c.recorded || c.t.info.Suspect || c.effect.Lookup == nil {
		return nil
	}
	c.evidence = "lookup before the first call"
	if err := c.lookUp(ctx); err != nil {
		return err
	}
	if c.finding == ledger.FindingNotFound {
		if c.mayStillArrive = c.mayArrive(); !c.mayStillArrive {
			c.finding = ledger.FindingNone
		}
	}
	return nil
}

// longestLease is how long a worker may take to notice that its run is over: the lease of a task in the widest fan-out.
const longestLease = 4 * time.Second

// mayArrive reports whether a call of a run that ended before this one, and ended badly, may not have arrived yet.
func (c *effectCall) mayArrive() bool {
	behind := c.t.env.Behind
	return behind > 0 && behind < longestLease+c.timeout+c.settle
}

// recover gets the receipt of a committed effect again, which was too large to be kept: from the target, or from a
// person. It is not recorded again.
func (c *effectCall) recover(ctx context.Context) error {
	if err := c.lookUp(ctx); err != nil {
		return err
	}
	if c.finding == ledger.FindingCommitted {
		c.entry.Result = jsontext.OrNull(c.receipt)
		return nil
	}
	c.reason = strings.TrimSpace(fmt.Sprintf("it did, but its receipt of %d bytes was too large to be kept, and the target "+
		"does not show it. %s", c.entry.Left, c.reason))
	r, by, err := c.ruling(ctx)
	if err != nil {
		return err
	}
	if r.Action != rulingDone || pregel.IsNull(jsontext.OrNull(r.Receipt)) {
		return c.failed("get the receipt again", graphadapter.Permanent(fmt.Errorf("%s gave none, and the outside has the write", by)))
	}
	if err := c.check(r.Receipt); err != nil {
		return c.failed("get the receipt again", graphadapter.Permanent(fmt.Errorf("the receipt given by %s does not fit: %w", by, err)))
	}
	c.entry.Result = r.Receipt
	return nil
}
