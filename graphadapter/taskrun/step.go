package taskrun

import (
	"context"
	"errors"
	"time"

	"superstep.dev/graphadapter"
)

// superstep is the root graph's superstep that runs, whatever supersteps its subgraphs are in: its time is one.
type superstep struct {
	graph  string
	number int
	ctx    context.Context
	watch  *deadlineWatch // over ctx
	cancel context.CancelFunc
}

// enter makes number the superstep that runs; nothing changes while it is. With a limit its context ends in time, with
// a *graphadapter.StepTimeoutError as the cause.
func (s *superstep) enter(ctx context.Context, number int, limit time.Duration) {
	if s.ctx != nil && (s.number == number || limit <= 0) { // without a limit all supersteps have one context
		s.number = number
		return
	}
	s.leave()
	s.number, s.ctx, s.cancel = number, ctx, func() {}
	if limit > 0 {
		s.ctx, s.cancel = context.WithTimeoutCause(ctx, limit, &graphadapter.StepTimeoutError{Graph: s.graph, Step: number, Limit: limit})
	}
	s.watch = watchDeadline(s.ctx)
}

// leave frees the superstep's timer.
func (s *superstep) leave() {
	if s.ctx != nil {
		s.watch.end()
		s.cancel()
	}
	s.ctx = nil
}

// late reports whether the superstep's time is over.
func (s *superstep) late() bool {
	var late *graphadapter.StepTimeoutError
	return s.ctx != nil && errors.As(context.Cause(s.ctx), &late)
}
