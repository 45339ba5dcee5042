package cli

import (
	"context"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
)

func (a *app) forkCommand() *cobra.Command {
	var (
		as     string
		follow bool
		f      askFlags
	)
	cmd := a.build(command{
		use: "fork THREAD CHECKPOINT", short: "Run again from an earlier checkpoint", group: groupChange,
		args: []string{"THREAD", "CHECKPOINT"},
		about: `What came after the checkpoint runs again, on a branch of its own; the old branch stays in the history. With --as
the branch becomes a thread of its own, and THREAD stays as it is. Nodes that run again call the outside again: their
effects have new keys. To change something first, use update --at.`,
		example: []string{"fork r-7 c-51aa --follow", "fork r-7 c-51aa --as r-7b"},
		run: func(cmd *cobra.Command, args []string) error {
			req := superstep.ForkRequest{Thread: args[0], Checkpoint: args[1], As: as, Reason: f.reason}
			err := f.check()
			if err == nil {
				req.By, req.Token, err = a.asker(f, first(as, args[0]), approval.Control{Op: approval.OpFork, On: args[1]})
			}
			if err != nil {
				return err
			}
			return a.fork(cmd.Context(), req, cmd.Flags().Changed("as"), follow)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&as, "as", "", "`ID` of a new thread for the branch")
	f.register(flags, true)
	flags.BoolVar(&follow, "follow", false, "show the run until it waits or ends")
	return cmd
}

func (a *app) fork(ctx context.Context, req superstep.ForkRequest, named, follow bool) error {
	if err := checkThread(req.Thread); err != nil {
		return err
	}
	if named {
		if err := checkThread(req.As); err != nil {
			return err
		}
	}
	if req.Checkpoint == "" {
		return usagef("CHECKPOINT is empty; list them: %s", a.commandLine("history", req.Thread))
	}
	if err := checkCheckpoint("CHECKPOINT", req.Checkpoint); err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		view, err := svc.Fork(ctx, req)
		if err != nil {
			return err
		}
		if follow {
			return a.follow(ctx, svc, view, false)
		}
		return a.showStarted(view)
	})
}
