package cli

import (
	"context"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
)

// The bounds of --reason, in bytes.
const (
	maxReason      = 1024
	maxDrainReason = 1000
)

func (a *app) retryCommand() *cobra.Command {
	var f askFlags
	cmd := a.build(command{
		use: "retry THREAD", short: "Continue a failed run", group: groupRuns, args: []string{"THREAD"},
		about:   `The run goes on from its last checkpoint: what finished is not run again.`,
		example: []string{"retry r-7"},
		run: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			call := func(svc service, ctx context.Context, thread string) (superstep.ThreadView, error) {
				by, token, err := a.asker(f, thread, approval.Control{Op: approval.OpRetry})
				if err != nil {
					return superstep.ThreadView{}, err
				}
				return svc.RetryWith(ctx, superstep.RetryRequest{Thread: thread, By: by, Reason: f.reason, Token: token})
			}
			return onThread(a, cmd.Context(), args[0], call, func(view superstep.ThreadView) error {
				a.printf("retrying  %s\n", clean(view.Thread))
				a.next(nextOf(view.Thread, superstep.StatusRunning, nil))
				return nil
			})
		},
	})
	f.register(cmd.Flags(), true)
	return cmd
}

func (a *app) drainCommand() *cobra.Command {
	var f askFlags
	cmd := a.build(command{
		use: "drain THREAD", short: "Stop a run before its next step", group: groupRuns, args: []string{"THREAD"},
		about: `The step under way ends and is kept; nothing after it begins until the run is told to go on. Unlike cancel it
interrupts no node.`,
		example: []string{`drain r-7 --reason "the payments service moves"`},
		run: func(cmd *cobra.Command, args []string) error {
			call := func(svc service, ctx context.Context, thread string) (superstep.ThreadView, error) {
				by, token, err := a.asker(f, thread, approval.Control{Op: approval.OpDrain})
				if err != nil {
					return superstep.ThreadView{}, err
				}
				return svc.DrainWith(ctx, superstep.DrainRequest{Thread: thread, Reason: f.reason, By: by, Token: token})
			}
			if err := f.check(); err != nil {
				return err
			}
			return onThread(a, cmd.Context(), args[0], call, a.showStanding)
		},
	})
	f.register(cmd.Flags(), true)
	return cmd
}

// showStanding shows where a run stands that was asked to stop.
func (a *app) showStanding(view superstep.ThreadView) error {
	switch view.Status {
	case superstep.StatusStopped:
		a.printf("drained  %s  stands behind step %d%s\n", clean(view.Thread), view.Step, before(view.Nodes))
		a.next(goOn(view.Graph, view.Thread))
	case superstep.StatusRunning:
		a.printf("draining  %s  step %d is still under way\n", clean(view.Thread), view.Step)
		a.next([]string{"show", view.Thread})
	default:
		a.printf("nothing to drain  %s is %s\n", clean(view.Thread), view.Status)
	}
	return nil
}

func checkReason(reason string, most int) error {
	if len(reason) > most {
		return usagef("--reason has %d bytes; at most %d are allowed", len(reason), most)
	}
	return nil
}
