package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
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
	before := slices.Clone(told) // told grows while targets are looked for
	var mu sync.Mutex
	var failed []error
	var all sync.WaitGroup
	for _, target := range n.notifier.Targets() {
		if slices.Contains(before, target) {
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

// noGate says what to do about a worker that cannot verify anything.
const noGate = "the worker that serves the graph has no keys to verify answers with: whoever runs it has to start it with " +
	"--approval-keys FILE, the public keys of who approves (superstep signing-key NAME makes a pair)"

// Verify is the activity that says which replies to approvals count, as things are now. What cannot be verified does not:
// it fails only to be repeated on another worker.
func (n *Nodes) Verify(ctx context.Context, req graphadapter.VerifyRequest) (graphadapter.VerifyReply, error) {
	g := n.byName[req.Graph]
	if g == nil {
		err := fmt.Errorf("this worker does not serve the graph %q", req.Graph)
		return graphadapter.VerifyReply{}, temporal.NewApplicationErrorWithCause(err.Error(), graphadapter.NodeUnservedType, err)
	}
	reply, err := g.Verify(ctx, req, n.reply)
	if err != nil {
		activity.GetLogger(ctx).Error("answers to approvals cannot be verified", "thread", req.Thread, "error", err)
	}
	if graphadapter.IsPermanent(err) {
		err = temporal.NewNonRetryableApplicationError(err.Error(), "BadRequest", err)
	}
	return reply, err
}

// reply asks the gate about one reply.
func (n *Nodes) reply(ctx context.Context, check approval.ReplyCheck) (approval.Ruling, error) {
	if n.gate == nil {
		return approval.Ruling{Code: approval.CodeUnavailable, Reason: noGate}, nil
	}
	ruling, err := n.gate.Reply(ctx, check)
	if ruling.Cause != nil {
		activity.GetLogger(ctx).Error("the gate cannot be asked", "thread", check.Thread, "question", check.Question, "error", ruling.Cause)
	}
	return ruling, err
}

// Control is the activity that says whether something may be done to a run, as things are now. A worker without a gate has no
// rules that it could be against.
func (n *Nodes) Control(ctx context.Context, check approval.ControlCheck) (approval.Ruling, error) {
	ruling, err := n.gate.Control(ctx, check)
	if ruling.Cause != nil {
		activity.GetLogger(ctx).Error("the gate cannot be asked", "thread", check.Thread, "op", check.Control.Op, "error", ruling.Cause)
	}
	return ruling, err
}
