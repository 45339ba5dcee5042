package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// onTime is how much before its time an execution counts as in time: the server's timers and clock have no finer sense.
const onTime = 50 * time.Millisecond

// again ends a failed attempt so that the server runs the task once more after the wait, which holds no worker. The
// attempt is on record before: whoever is lost from here on, it counts once, and the wait is not shortened.
func (e *execution) again(ctx context.Context, wait time.Duration, emitted []pregel.Emission, why error) (pregel.Outcome, error) {
	failure := graphadapter.FailureOf(e.graphName(), e.req.Task.Node, why)
	text := failure.Type + ": " + failure.Error()
	if e.owner.hasNews() {
		return e.yielded("", graphadapter.CarryOver{Failures: e.owner.attempt(), RetryAt: e.owner.inTime(wait), Failed: text,
			Emitted: append(e.owner.emitted(), emitted...)})
	}
	if err := e.owner.countFailure(ctx, wait, emitted); err != nil {
		return pregel.Outcome{}, temporal.NewApplicationErrorWithCause("the failed attempt could not be recorded",
			graphadapter.NodeStoppedType, err)
	}
	return pregel.Outcome{}, retryIn(wait, text)
}

// retryIn is the error after which the server runs the task again in that time; the server's own policy has no say. It
// goes without its cause, whose text nothing bounds: an error that is too large to report looks like a lost worker.
func retryIn(wait time.Duration, why string) error {
	return temporal.NewApplicationErrorWithOptions(why, graphadapter.NodeRetryType, temporal.ApplicationErrorOptions{
		NextRetryDelay: max(wait, time.Millisecond), // 0 would mean the activity's own interval
	})
}

// tooEarly gives the task back for the rest of its wait. The server runs it too early when a worker was lost after it
// had recorded a failed attempt and before it could report it.
func (e *execution) tooEarly(ctx context.Context) error {
	rest := e.owner.waitsFor()
	if rest <= onTime {
		return nil
	}
	// Not recorded, it counts as a lost worker, of which a person hears only after many.
	_ = e.owner.countGivenBack(ctx)
	why := "the wait before the next attempt is not over"
	if _, b, err := graphadapter.DecodeCarryOver(e.req.Task.Ledger); err == nil && b.Failed != "" {
		why = b.Failed
	}
	return retryIn(rest, why)
}

// retrySubgraph answers whether a failed subgraph is to be run on, after the wait that its node's policy asks for. The
// yes is on record before the wait, so it is given once, and the execution that finds it there hands it on.
func (e *execution) retrySubgraph(ctx context.Context) (pregel.Outcome, error) {
	policies, err := e.graph.RetryPolicies(&e.req.Task)
	if err != nil {
		return pregel.Outcome{}, e.unserved(ctx, err)
	}
	if e.owner.attempt() > 1 {
		return pregel.Outcome{Again: true}, nil
	}
	wait, again := graphadapter.RetryAfter(policies, e.req.Task.Attempt, e.req.Task.Retry)
	if !again || wait <= 0 {
		return pregel.Outcome{Again: again}, nil
	}
	return e.again(ctx, wait, nil, e.req.Task.Retry)
}
