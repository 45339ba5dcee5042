package activities

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/approval"
)

// errNobodyToTell is no final error: another worker may have a notifier, or this one after a deploy.
var errNobodyToTell = errors.New("this worker has nobody to tell (WorkerConfig.Notify), though the one that took the run in had")

// Notify is the activity that tells all targets. Those that have been told are in its heartbeat, so a target that is down
// costs the others nothing. One that will never take the notice is left out.
func (n *Nodes) Notify(ctx context.Context, notice approval.Notice) error {
	if n.notifier == nil {
		return temporal.NewApplicationError(errNobodyToTell.Error(), "superstep.NobodyToTell")
	}
	var told []string
	if activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &told) // whoever is told twice drops the second
	}
	var mu sync.Mutex
	var failed []error
	var all sync.WaitGroup
	for _, target := range n.notifier.Targets() {
		if slices.Contains(told, target) {
			continue
		}
		all.Go(func() {
			err := n.notifier.Notify(ctx, target, notice)
			mu.Lock()
			defer mu.Unlock()
			var final interface{ Permanent() bool }
			switch {
			case err == nil:
			case errors.As(err, &final) && final.Permanent():
				activity.GetLogger(ctx).Warn("a notice was refused and is not told again", "target", target, "notice", notice.ID, "error", err)
			default:
				failed = append(failed, err)
				return
			}
			told = append(told, target)
			activity.RecordHeartbeat(ctx, told)
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
