package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// maxUpdate bounds update --values, in bytes.
const maxUpdate = 1 << 20

// updateFlags are the flags of update.
type updateFlags struct {
	place
	ask            askFlags
	values, asNode string
	id             string
	valued         bool
}

func (a *app) updateCommand() *cobra.Command {
	var f updateFlags
	cmd := a.build(command{
		use: "update THREAD", short: "Write to a thread's state from outside", group: groupChange, args: []string{"THREAD"},
		about: `The values are written as if a node had returned them, as a checkpoint of their own: what the thread was about to
do and the questions it asked are dropped, and what follows the node of --as-node comes next. Nothing runs before the
thread is told to go on. A channel with a reducer takes {"__overwrite__": VALUE} to be set instead of added to. All of
the update is applied or none of it; while a run is under way it is refused. Whoever repeats an update without knowing
what became of it names it with --id: the thread's last run takes it once.`,
		example: []string{
			`update r-7 --values '{"amount":9900}'`,
			`update r-7 --values '{"approved":true}' --as-node approval`,
			`update r-7 --as-node __end__`,
			`update r-7 --values @values.json --at c-51aa --id fix-1`,
		},
		run: func(cmd *cobra.Command, args []string) error {
			f.valued = cmd.Flags().Changed("values")
			return a.update(cmd.Context(), args[0], &f)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.values, "values", "", "channels to write as a `JSON` object, @FILE, or - for standard input; at most 1 MiB")
	flags.StringVar(&f.asNode, "as-node", "", "write as `NODE` (default: the one that ran last); "+pregel.End+" drops what is left to do")
	flags.StringVar(&f.id, "id", "", "`ID` of this update, to repeat it safely (default: a new one)")
	f.ask.register(flags, true)
	f.register(flags, "update `CHECKPOINT` of the history, as a new branch (default: now)")
	return cmd
}

func (a *app) update(ctx context.Context, thread string, f *updateFlags) error {
	req, err := a.updateRequest(ctx, thread, f)
	if err != nil {
		return err
	}
	call := func(svc service, ctx context.Context, _ string) (superstep.StateView, error) {
		view, err := svc.Update(ctx, req)
		return view, interrupted(ctx, err, "interrupted; "+thread+" was updated or was not. Look: "+
			a.commandLine("history", thread, "--source", "update"))
	}
	return onThread(a, ctx, thread, call, a.showUpdated)
}

// updateRequest checks everything that can be checked without a server.
func (a *app) updateRequest(ctx context.Context, thread string, f *updateFlags) (superstep.UpdateRequest, error) {
	req := superstep.UpdateRequest{Thread: thread, Checkpoint: f.at, AsNode: f.asNode, ID: f.id, Reason: f.ask.reason}
	if !f.valued && f.asNode == "" {
		return req, usagef(`--values is missing, for instance '{"amount":9900}'; with --as-node it may be left out`)
	}
	if len(f.asNode) > maxThreadID || strings.ContainsFunc(f.asNode, notPrintable) {
		return req, usagef("--as-node %s cannot be a node's name", quoted(f.asNode))
	}
	if len(f.id) > maxThreadID || strings.ContainsFunc(f.id, notPrintable) {
		return req, usagef("--id %s cannot be an update's id: at most %d bytes, all printable", quoted(f.id), maxThreadID)
	}
	err := f.ask.check()
	if err == nil {
		req.By, req.Token, err = a.asker(f.ask, thread, approval.Control{Op: approval.OpUpdate})
	}
	if err != nil {
		return req, err
	}
	if req.Subgraph, err = f.subgraph(); err != nil {
		return req, err
	}
	if err := f.check(); err != nil || !f.valued {
		return req, err
	}
	req.Values, err = jsonFlag{name: "--values", max: maxUpdate, object: true}.read(ctx, f.values, a.stdin)
	return req, err
}

func (a *app) showUpdated(view superstep.StateView) error {
	a.printf("updated  %s  step %d  checkpoint %s\n", clean(view.Thread), view.Step, clean(view.Checkpoint))
	if len(view.Next) == 0 {
		a.printf("nothing is left to do\n")
		return nil
	}
	a.printf("next  %s\n", clean(list(view.Next)))
	a.next(goOn(view.Graph, view.Thread))
	return nil
}

// goOn is the command with which a thread that stands still goes on.
func goOn(graph, thread string) []string {
	return []string{"run", graph, "--thread", thread, "--follow"}
}
