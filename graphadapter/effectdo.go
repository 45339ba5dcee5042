package graphadapter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev/graphadapter/pregel"
)

func (c *effectCall) check(receipt pregel.Value) error {
	if c.effect.Check == nil {
		return nil
	}
	return c.effect.Check(c.entry.Params, receipt)
}

func (c *effectCall) do(ctx context.Context) (pregel.Value, error) {
	ctx, cancel := c.limited(ctx)
	defer cancel()
	receipt, err := c.effect.Do(ctx, c.entry.Key, c.entry.Params)
	if err != nil {
		return nil, c.late(ctx, err)
	}
	return receipt, nil
}

// deadline is how long one call to the target may take: within the lease, no other attempt can have started.
func (c *effectCall) deadline() time.Duration {
	if lease := c.t.env.Lease; lease > 0 {
		return min(c.timeout, lease)
	}
	return c.timeout
}

var errNoAnswer = errors.New("no answer in time")

func (c *effectCall) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.deadline(), errNoAnswer)
}

// late adds to an error of Do or Lookup that its time was over.
func (c *effectCall) late(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errNoAnswer {
		return fmt.Errorf("no answer within %v: %w", c.deadline(), err)
	}
	return err
}
