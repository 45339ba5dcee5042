package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/cli/screen"
)

func (a looks) stateCommand() *cobra.Command {
	var (
		req   superstep.StateRequest
		where place
	)
	return a.build(command{
		use: "state THREAD", short: "Show a thread's values",
		about: `The value of every channel, what comes next and what is asked: now, with what the finished nodes of the step
under way wrote; or as it was at a checkpoint of the thread's history (--at). Long values are cut; -o json has them
whole. Ended threads are read from the server, without a worker.`,
		example: []string{
			"state r-7",
			"state r-7 --at c-51aa",
			"state r-7 --subgraphs",
			"state r-7 --in experts/search",
			"state r-7 -o json | jq .values.amount",
		},
		flags: func(flags *pflag.FlagSet) {
			where.register(flags, "`CHECKPOINT` of the history to show (default: now)")
			flags.BoolVar(&req.Subgraphs, "subgraphs", false, "show the states of subgraphs under way too")
		},
		run: func(ctx context.Context, args []string) (err error) {
			req.Thread, req.Checkpoint = args[0], where.at
			if req.Subgraph, err = where.subgraph(); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) (superstep.StateView, error) { return svc.StateOf(ctx, req) },
				func(view superstep.StateView) { a.showState(view, req) })
		},
	})
}

func (a looks) showState(view superstep.StateView, req superstep.StateRequest) {
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
func (a looks) showPlace(view superstep.StateView, path []string) {
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
func taskSays(task superstep.TaskView) string {
	switch {
	case task.Error != nil:
		return "failed: " + task.Error.Error()
	case task.Done:
		return "done"
	default:
		return ""
	}
}
