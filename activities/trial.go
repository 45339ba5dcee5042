package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
)

// turn is of those activities that are on trial: one at a time in a process, as its end is the end of all that it runs. See
// graphadapter.Losses.
var turn = make(chan struct{}, 1)

// takeTurn makes an execution whose losses want it run on trial. It stores that before it returns: an execution that is lost
// later has begun. change changes the losses that heartbeats carry. The error gives the activity back while another one has
// the turn; it must not be accounted for.
//
// The turn ends with release, or when the execution has run long enough to be cleared.
func (l *lease) takeTurn(ctx context.Context, losses graphadapter.Losses, change func(func(graphadapter.Losses) graphadapter.Losses)) (release func(), err error) {
	if !losses.OnTrial(l.info.Attempt) {
		return func() {}, nil
	}
	select {
	case turn <- struct{}{}:
	default:
		return nil, temporal.NewApplicationError("its last workers were lost: it runs when no other such task runs on the same "+
			"worker, to find out which of them it is", graphadapter.NodeStoppedType)
	}
	free := sync.OnceFunc(func() { <-turn })
	change(graphadapter.Losses.Tried)
	if err := l.store(ctx); err != nil {
		free()
		return nil, temporal.NewApplicationErrorWithCause("it does not run, as that could not be recorded", graphadapter.NodeStoppedType, err)
	}
	cleared := time.AfterFunc(losses.TrialTime(), func() {
		change(func(was graphadapter.Losses) graphadapter.Losses { return was.Cleared(l.info.Attempt) })
		_ = l.send(context.Background()) // one that fails is followed by the next
		free()
	})
	return func() {
		cleared.Stop()
		free()
	}, nil
}
