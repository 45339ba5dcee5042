package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
)

// sources are the values of history --source: how a checkpoint came to be.
var sources = []string{"input", "loop", "update", "fork"}

// maxHistory bounds history --limit.
const maxHistory = 100_000

// historyFlags are the flags of history.
type historyFlags struct {
	place
	before, source string
	limit, step    int
	stepped        bool
	values         bool
}

func (a *app) historyCommand() *cobra.Command {
	var f historyFlags
	cmd := a.build(command{
		use: "history THREAD", short: "Show a thread's checkpoints", group: groupLook, args: []string{"THREAD"},
		about: `One line a checkpoint, the newest first: what ran, what it wrote, what came next. Branches that a fork or an update
left behind are there too. Any of them can be looked at (state --at), changed (update --at) and run from again (fork).`,
		example: []string{
			"history r-7",
			"history r-7 --limit 10 --before c-51aa",
			"history r-7 --source update",
			"history r-7 --step 2 --values",
			"history r-7 -o json",
		},
		run: func(cmd *cobra.Command, args []string) error {
			f.stepped = cmd.Flags().Changed("step")
			return a.history(cmd.Context(), args[0], &f)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.limit, "limit", 0, "at most `N` checkpoints (default: all)")
	flags.StringVar(&f.before, "before", "", "only what came before `CHECKPOINT`")
	flags.StringVar(&f.source, "source", "", "only checkpoints made by `SOURCE`: "+strings.Join(sources, ", "))
	flags.IntVar(&f.step, "step", 0, "only checkpoints of step `N`; -1 is the first input's")
	flags.BoolVar(&f.values, "values", false, "show the values at each checkpoint")
	f.register(flags, "")
	return cmd
}

func (a *app) history(ctx context.Context, thread string, f *historyFlags) error {
	req, err := f.request(thread)
	if err != nil {
		return err
	}
	call := func(svc service, ctx context.Context, _ string) ([]superstep.CheckpointView, error) {
		views, err := svc.HistoryOf(ctx, req)
		return append([]superstep.CheckpointView{}, views...), err // an empty list for none
	}
	return onThread(a, ctx, thread, call, func(views []superstep.CheckpointView) error {
		return a.showHistory(views, req)
	})
}

func (f *historyFlags) request(thread string) (superstep.HistoryRequest, error) {
	req := superstep.HistoryRequest{Thread: thread, Limit: f.limit, Before: f.before, Source: f.source, Values: f.values}
	switch {
	case f.limit < 0 || f.limit > maxHistory:
		return req, usagef("--limit %d is not between 0 and %d", f.limit, maxHistory)
	case f.source != "" && !slices.Contains(sources, f.source):
		return req, usagef("--source %s is unknown; it is %s", quoted(f.source), strings.Join(sources, ", "))
	case f.stepped && f.step < -1:
		return req, usagef("--step %d is below -1", f.step)
	case f.stepped:
		req.Step = &f.step
	}
	if err := checkCheckpoint("--before", f.before); err != nil {
		return req, err
	}
	var err error
	req.Subgraph, err = f.subgraph()
	return req, err
}

func (a *app) showHistory(views []superstep.CheckpointView, req superstep.HistoryRequest) error {
	if len(views) == 0 {
		a.printf("no checkpoints\n")
		return nil
	}
	t := newTable("STEP", "CHECKPOINT", "SOURCE", "RAN", "WROTE", "NEXT")
	for _, v := range views {
		t.row(fmt.Sprint(v.Step), v.Checkpoint, v.Source, list(v.Ran), list(v.Wrote), list(v.Next))
	}
	if err := t.writeTo(a.stdout, ""); err != nil {
		return err
	}
	if req.Values {
		for _, v := range views {
			a.printf("\n%s\n", clean(v.Checkpoint))
			a.showValues(v.Values)
		}
	}
	if len(req.Subgraph) == 0 { // a run begins at a checkpoint of the graph itself
		a.next(forkOf(req.Thread, views))
	}
	return nil
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
