package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/internal/figures"
)

// recovery is counted of an execution that goes on for one that was lost with its worker: by the worker that goes on. Nil is
// that of an execution that goes on for none.
type recovery struct {
	metrics client.MetricsHandler
	graph   string
}

// recovers counts that the execution runs again what a lost one ran; nil when it does not.
func (l *lease) recovers(ctx context.Context, tally *host.Tally, graph string) *recovery {
	if !tally.IsBehindLoss() {
		return nil
	}
	r := &recovery{activity.GetMetricsHandler(ctx), graph}
	figures.Add(r.metrics, figures.RecoveriesBegun, graph, 1)
	figures.Took(r.metrics, figures.RecoveryTime, graph, l.Now().Sub(l.silentSince()))
	return r
}

// silentSince is when the execution before this one gave its last sign of life, by the server's clock. One that was lost before
// its first heartbeat began then: that of the first attempt is known, that of another is when the server must have begun to wait.
func (l *lease) silentSince() time.Time {
	attempt := l.info.Attempt
	switch {
	case l.before.By == attempt-1:
		return time.UnixMilli(l.before.At)
	case attempt == 2:
		return l.info.ScheduledTime
	}
	return l.info.StartedTime.Add(-l.info.HeartbeatTimeout)
}

// ended counts how the execution ended, which returns that error to the server.
func (r *recovery) ended(err error) {
	if r == nil {
		return
	}
	outcome := "given_back"
	if wentOn(err) {
		outcome = "went_on"
	}
	figures.Add(r.metrics, figures.Recoveries, r.graph, 1, outcome)
}

// wentOn reports whether an execution that returns that error is the activity's last: with an outcome, a failure for good, or as
// cancelled.
func wentOn(err error) bool {
	var failure *temporal.ApplicationError
	return err == nil || errors.Is(err, activity.ErrResultPending) || isCancelled(err) ||
		errors.As(err, &failure) && failure.Type() == graphadapter.NodeFailedType
}

// duplicates counts the duplicate writes that an execution finds.
func duplicates(ctx context.Context, graph string) func(effect string) {
	return func(effect string) {
		figures.Add(activity.GetMetricsHandler(ctx), figures.Duplicates, graph, 1, effect)
	}
}

// signed returns the details of a heartbeat with the time at which it is sent, and why a result is held back.
func (l *lease) signed(details []any) []any {
	progress, ok := details[0].(graphadapter.Progress)
	if !ok {
		return details
	}
	progress.Beat = graphadapter.Beat{By: l.info.Attempt, At: l.Now().UnixMilli()}
	l.mu.Lock()
	progress.Unstored = l.unstored
	l.mu.Unlock()
	return append([]any{progress}, details[1:]...)
}
