package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

func (a looks) stateCommand() *cobra.Command {
	var (
		req   thread.StateRequest
		where place
	)
	return a.build(command{
		name: "state",
		flags: func(flags *pflag.FlagSet) {
			where.register(flags, "`CHECKPOINT` of the history to show (default: now)")
			flags.BoolVar(&req.Subgraphs, "subgraphs", false, "show the states of subgraphs under way too")
			a.archived(flags)
		},
		run: func(ctx context.Context, args []string) (err error) {
			req.Thread, req.Checkpoint = args[0], where.at
			if req.Subgraph, err = where.subgraph(); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) (thread.StateView, error) { return svc.State(ctx, req) },
				func(view thread.StateView) { a.showState(view, req) })
		},
	})
}

func (a looks) showState(view thread.StateView, req thread.StateRequest) {
	a.Printf("%s  %s  step %d  checkpoint %s\n", screen.Clean(view.Thread), a.Status(string(view.Status)), view.Step, screen.Clean(view.Checkpoint))
	a.showPlace(view, req.Subgraph)
	switch {
	case req.Checkpoint == "":
		a.showQuestions(view.Questions)
		a.nextAfterLook(view.Thread, view.Status, view.Questions)
	case len(req.Subgraph) == 0 && len(view.Next) > 0:
		a.next("fork", view.Thread, view.Checkpoint)
	}
}

// showPlace shows what a graph, or a subgraph of it, has next and its values, and below that its subgraphs.
func (a looks) showPlace(view thread.StateView, path []string) {
	if len(view.Next) > 0 {
		a.Printf("next  %s\n", screen.Clean(screen.List(view.Next)))
	}
	t := a.Table()
	for _, task := range view.Tasks {
		t.Fact(task.Node, taskSays(task))
	}
	t.Print("")
	a.Values(view.Values)
	for _, task := range view.Tasks {
		if task.State == nil {
			continue
		}
		inner := append(slices.Clone(path), task.Node)
		a.Printf("\nin %s  step %d  checkpoint %s\n", screen.Clean(strings.Join(inner, "/")), task.State.Step, screen.Clean(task.State.Checkpoint))
		a.showPlace(*task.State, inner)
	}
}

// taskSays is what became of a task of the step under way, "" for one that has yet to begin or to end.
func taskSays(task thread.TaskView) string {
	switch {
	case task.Error != nil:
		return "failed: " + task.Error.Error()
	case task.Done:
		return "done"
	}
	return ""
}

func (a looks) checkpointCommand() *cobra.Command {
	var req thread.CheckpointRequest
	return a.build(command{
		name: "checkpoint",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&req.Checkpoint, "at", "", "`CHECKPOINT` of the history (default: where the thread stands)")
			a.archived(flags)
		},
		run: func(ctx context.Context, args []string) error {
			req.Thread = args[0]
			if err := checkCheckpoint("--at", req.Checkpoint); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) (thread.CheckpointRecord, error) { return svc.Checkpoint(ctx, req) }, a.showCheckpoint)
		},
	})
}

func (a looks) showCheckpoint(r thread.CheckpointRecord) {
	a.Printf("%s  %s  step %d  checkpoint %s\n", screen.Clean(r.Thread), a.Status(string(r.Status)), r.Step, screen.Clean(r.ID))
	t := a.Table()
	t.Fact("run", r.RunID)
	t.Fact("created", a.Moment(r.CreatedAt))
	t.Fact("plan", r.PlanVersion)
	t.Fact("next", screen.List(r.Nodes))
	t.Fact("finished", screen.List(r.Finished))
	t.Fact("resume", string(r.ResumePolicy))
	t.Fact("recheck", screen.List(r.Recheck))
	t.Print("")
	if len(r.CompletedSteps) > 0 {
		a.Printf("\n")
		screen.Rows(a.Screen, r.CompletedSteps, func(s thread.CompletedStep) screen.Row {
			return screen.Row{s.Step, screen.List(s.Nodes), s.Checkpoint}
		}, "STEP", "DONE", "CHECKPOINT")
	}
	if r.More > 0 {
		a.Printf("and %d steps before\n", r.More)
	}
	if len(r.SideEffects) > 0 {
		a.Printf("\n")
		screen.Rows(a.Screen, r.SideEffects, func(e thread.SideEffect) screen.Row {
			return screen.Row{e.Key, e.Tool, e.State, e.Node, e.Step}
		}, "KEY", "EFFECT", "STATE", "NODE", "STEP")
	}
	if len(r.PendingActions) > 0 {
		a.Printf("\n")
		screen.Rows(a.Screen, r.PendingActions, func(p thread.PendingAction) screen.Row {
			return screen.Row{p.Question, p.Tool, p.ParamsHash, screen.List(p.Permissions)}
		}, "QUESTION", "ACTION", "PARAMS", "PERMISSIONS")
	}
	if len(r.Artifacts) > 0 {
		a.Printf("\n")
		screen.Rows(a.Screen, r.Artifacts, func(f thread.ArtifactRef) screen.Row { return screen.Row{f.Name, f.Bytes, f.SHA256} }, "VALUE", "BYTES", "SHA-256")
	}
}

// sources are the values of history --source: how a checkpoint came to be.
var sources = []string{"input", "loop", "update", "fork"}

// maxHistory bounds history --limit.
const maxHistory = 100_000

func (a looks) historyCommand() *cobra.Command {
	var (
		req   thread.HistoryRequest
		where place
		step  int
		given func(flag string) bool
	)
	return a.build(command{
		name: "history",
		flags: func(flags *pflag.FlagSet) {
			given = flags.Changed
			flags.IntVar(&req.Limit, "limit", 0, "at most `N` checkpoints (default: all)")
			flags.StringVar(&req.Before, "before", "", "only what came before `CHECKPOINT`")
			choiceVar(flags, &req.Source, "source", "", sources, "only checkpoints made by `SOURCE`: "+screen.List(sources))
			flags.IntVar(&step, "step", 0, "only checkpoints of step `N`; -1 is the first input's")
			flags.BoolVar(&req.Values, "values", false, "show the values at each checkpoint")
			where.register(flags, "")
			a.archived(flags)
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
			return call(ctx, a.app, func(svc service) ([]thread.CheckpointView, error) {
				views, err := svc.History(ctx, req)
				return listed(views), err
			}, func(views []thread.CheckpointView) { a.showHistory(views, req) })
		},
	})
}

func (a looks) showHistory(views []thread.CheckpointView, req thread.HistoryRequest) {
	if len(views) == 0 {
		a.Printf("no checkpoints\n")
		return
	}
	screen.Rows(a.Screen, views, func(v thread.CheckpointView) screen.Row {
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
func forkOf(thread string, views []thread.CheckpointView) []string {
	for _, v := range views[1:] {
		if len(v.Next) > 0 {
			return []string{"fork", thread, v.Checkpoint}
		}
	}
	return nil
}
