package cli

import (
	"context"

	"github.com/spf13/cobra"

	"superstep.dev"
)

// The bounds of --reason, in bytes.
const (
	maxReason      = 1024
	maxDrainReason = 1000
)

func (a *app) retryCommand() *cobra.Command {
	return a.build(command{
		use: "retry THREAD", short: "Continue a failed run", group: groupRuns, args: []string{"THREAD"},
		about:   `The run goes on from its last checkpoint: what finished is not run again.`,
		example: []string{"retry r-7"},
		run: func(cmd *cobra.Command, args []string) error {
			return onThread(a, cmd.Context(), args[0], service.Retry, func(view superstep.ThreadView) error {
				a.printf("retrying  %s\n", clean(view.Thread))
				a.next(nextOf(view.Thread, superstep.StatusRunning, nil))
				return nil
			})
		},
	})
}

func (a *app) drainCommand() *cobra.Command {
	var reason string
	cmd := a.build(command{
		use: "drain THREAD", short: "Stop a run before its next step", group: groupRuns, args: []string{"THREAD"},
		about: `The step under way ends and is kept; nothing after it begins until the run is told to go on. Unlike cancel it
interrupts no node.`,
		example: []string{`drain r-7 --reason "the payments service moves"`},
		run: func(cmd *cobra.Command, args []string) error {
			call := func(svc service, ctx context.Context, thread string) (superstep.ThreadView, error) {
				return svc.Drain(ctx, thread, reason)
			}
			if err := checkReason(reason, maxDrainReason); err != nil {
				return err
			}
			return onThread(a, cmd.Context(), args[0], call, a.showStanding)
		},
	})
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for those who look later")
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
