package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/cli/screen"
)

// sources are the values of history --source: how a checkpoint came to be.
var sources = []string{"input", "loop", "update", "fork"}

// maxHistory bounds history --limit.
const maxHistory = 100_000

func (a looks) historyCommand() *cobra.Command {
	var (
		req   superstep.HistoryRequest
		where place
		step  int
		given func(flag string) bool
	)
	return a.build(command{
		use: "history THREAD", short: "Show a thread's checkpoints",
		about: `One line a checkpoint, the newest first: what ran, what it wrote, what came next. Branches that a fork or an update
left behind are there too. Any of them can be looked at (state --at), changed (update --at) and run from again (fork).`,
		example: []string{
			"history r-7",
			"history r-7 --limit 10 --before c-51aa",
			"history r-7 --source update",
			"history r-7 --step 2 --values",
			"history r-7 -o json",
		},
		flags: func(flags *pflag.FlagSet) {
			given = flags.Changed
			flags.IntVar(&req.Limit, "limit", 0, "at most `N` checkpoints (default: all)")
			flags.StringVar(&req.Before, "before", "", "only what came before `CHECKPOINT`")
			choiceVar(flags, &req.Source, "source", "", sources, "only checkpoints made by `SOURCE`: "+screen.List(sources))
			flags.IntVar(&step, "step", 0, "only checkpoints of step `N`; -1 is the first input's")
			flags.BoolVar(&req.Values, "values", false, "show the values at each checkpoint")
			where.register(flags, "")
		},
		run: func(ctx context.Context, args []string) (err error) {
			req.Thread = args[0]
			if given("step") {
				req.Step = &step
			}
			if err := cmp.Or(checkBetween("--limit", req.Limit, 0, maxHistory), checkCheckpoint("--before", req.Before)); err != nil {
				return err
			}
			if step < -1 {
				return usagef("--step %d is below -1", step)
			}
			if req.Subgraph, err = where.subgraph(); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) ([]superstep.CheckpointView, error) {
				views, err := svc.HistoryOf(ctx, req)
				return listed(views), err
			}, func(views []superstep.CheckpointView) { a.showHistory(views, req) })
		},
	})
}

func (a looks) showHistory(views []superstep.CheckpointView, req superstep.HistoryRequest) {
	if len(views) == 0 {
		a.Printf("no checkpoints\n")
		return
	}
	screen.Rows(a.Screen, views, func(v superstep.CheckpointView) screen.Row {
		return screen.Row{v.Step, v.Checkpoint, v.Source, screen.List(v.Ran), screen.List(v.Wrote), screen.List(v.Next)}
	}, "STEP", "CHECKPOINT", "SOURCE", "RAN", "WROTE", "NEXT")
	if req.Values {
		for _, v := range views {
			a.Printf("\n%s\n", screen.Clean(v.Checkpoint))
			a.Values(v.Values)
		}
	}
	if len(req.Subgraph) == 0 { // a run begins at a checkpoint of the graph itself
		a.next(forkOf(req.Thread, views)...)
	}
}

// forkOf returns the command that runs again from the newest checkpoint behind which something was run already, nil when
// there is none.
func forkOf(thread string, views []superstep.CheckpointView) []string {
	for _, v := range views[1:] {
		if len(v.Next) > 0 {
			return []string{"fork", thread, v.Checkpoint}
		}
	}
	return nil
}
