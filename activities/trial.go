package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
)

// turn is of those activities that are on trial: one at a time in a process, as its end is the end of all that it runs. See
// graphadapter.Losses.
var turn = make(chan struct{}, 1)

// onTrial makes an execution whose losses want it run on trial. It stores that before it returns: an execution that is lost
// later has begun. The error gives the activity back while another one has the turn; it must not be accounted for.
//
// The turn ends with release, or when the execution has run long enough to be cleared.
func (l *lease) onTrial(ctx context.Context, tally *host.Tally) (release func(), err error) {
	needed, wanted := tally.Trial()
	if !wanted {
		return func() {}, nil
	}
	select {
	case turn <- struct{}{}:
	default:
		return nil, temporal.NewApplicationError("its last workers were lost: it runs when no other such task runs on the same "+
			"worker, to find out which of them it is", graphadapter.NodeStoppedType)
	}
	free := sync.OnceFunc(func() { <-turn })
	tally.Try()
	if err := l.Store(ctx); err != nil {
		free()
		return nil, temporal.NewApplicationErrorWithCause("it does not run, as that could not be recorded", graphadapter.NodeStoppedType, err)
	}
	cleared := time.AfterFunc(needed, func() {
		tally.Clear()
		_ = l.Send(context.Background()) // one that fails is followed by the next
		free()
	})
	return func() {
		cleared.Stop()
		free()
	}, nil
}
