package taskrun

import (
	"context"
	"encoding/json"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// approve returns when the call may be made, with the parameters that were approved. It is asked right before each call,
// so never about an effect that the outside has, and about one that it may have only once it was looked up.
func (c *effectCall) approve(ctx context.Context) error {
	if c.effect.Approval == nil {
		return nil
	}
	first, needed, err := c.effect.Approval(c.proposed)
	if err != nil {
		return c.failed("ask for approval", graphadapter.Permanent(err))
	}
	if !needed {
		return nil
	}
	asks := &approving{t: c.t, key: "approve/effect/" + c.entry.Key, canonical: c.effect.Canonical, with: func(params pregel.Value) (approval.Action, error) {
		return c.action(first, params)
	}}
	d, err := asks.decide(ctx)
	if err != nil {
		return err
	}
	if err := c.t.Rejected(c.effect.Name, d); err != nil {
		return err
	}
	return c.approved(d)
}

// action is the call as people are asked about it: with the parameters that somebody proposed, nil for the node's own.
// Since they may change who has to approve, the effect is asked about them.
func (c *effectCall) action(first approval.Action, params pregel.Value) (approval.Action, error) {
	a := first
	if params != nil {
		edited, needed, err := c.effect.Approval(params)
		if err != nil {
			return a, err
		}
		if needed {
			a = edited
		}
	}
	a.Tool, a.ToolVersion, a.Key, a.Params = c.effect.Name, c.effect.Version, c.entry.Key, c.proposed
	if params != nil {
		a.Params = params
	}
	return a, nil
}

// approved makes the call one with the parameters that were approved. Under a key that may have been sent there is only
// one write: other parameters would be another.
func (c *effectCall) approved(d approval.Decision) error {
	params, hash := c.proposed, c.proposedHash
	if d.Params != nil {
		var err error
		params = d.Params
		if hash, err = graphadapter.ParamsHash(params); err != nil {
			return c.failed("ask for approval", graphadapter.Permanent(err))
		}
	}
	if c.entry.Attempts > 0 && c.entry.ParamsHash != hash {
		return c.located(&ledger.ConflictError{Name: c.entry.Name, Key: c.entry.Key, Recorded: c.entry.ParamsHash, Got: hash})
	}
	c.entry.Params, c.entry.ParamsHash, c.entry.Approved = params, hash, approvedBy(d, c.proposedHash)
	return nil
}

// approvedParams returns the parameters of a recorded call that were too large to be stored with it: the node's own, or
// those that somebody proposed instead, which the answer has.
func (c *effectCall) approvedParams(recorded ledger.Entry) pregel.Value {
	if recorded.ParamsHash == c.proposedHash {
		return c.proposed
	}
	for _, answer := range c.t.answers {
		var d approval.Decision
		if json.Unmarshal(answer.Value, &d) != nil || d.Verdict != approval.VerdictEdit {
			continue
		}
		params, err := jsontext.OrNull(d.Params), error(nil)
		if c.effect.Canonical != nil {
			params, err = c.effect.Canonical(params)
		}
		if err != nil {
			continue
		}
		if hash, err := graphadapter.ParamsHash(params); err == nil && hash == recorded.ParamsHash {
			return params
		}
	}
	return nil // of another task: looking the write up then fails, and says that it cannot read them
}
