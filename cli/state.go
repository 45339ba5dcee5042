package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
)

func (a *app) stateCommand() *cobra.Command {
	var (
		where     place
		subgraphs bool
	)
	cmd := a.build(command{
		use: "state THREAD", short: "Show a thread's values", group: groupLook, args: []string{"THREAD"},
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
		run: func(cmd *cobra.Command, args []string) error {
			req := superstep.StateRequest{Thread: args[0], Checkpoint: where.at, Subgraphs: subgraphs}
			var err error
			if req.Subgraph, err = where.subgraph(); err != nil {
				return err
			}
			if err := where.check(); err != nil {
				return err
			}
			call := func(svc service, ctx context.Context, _ string) (superstep.StateView, error) {
				return svc.StateOf(ctx, req)
			}
			return onThread(a, cmd.Context(), args[0], call, func(view superstep.StateView) error {
				return a.showState(view, req)
			})
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	where.register(flags, "`CHECKPOINT` of the history to show (default: now)")
	flags.BoolVar(&subgraphs, "subgraphs", false, "show the states of subgraphs under way too")
	return cmd
}

func (a *app) showState(view superstep.StateView, req superstep.StateRequest) error {
	a.printf("%s  %s  step %d  checkpoint %s\n", clean(view.Thread), a.status(string(view.Status)), view.Step, clean(view.Checkpoint))
	if err := a.showPlace(view, req.Subgraph); err != nil {
		return err
	}
	if req.Checkpoint == "" {
		if err := a.showQuestions(view.Questions); err != nil {
			return err
		}
		a.nextAfterLook(view.Thread, view.Status, view.Questions)
		return nil
	}
	if len(req.Subgraph) == 0 && len(view.Next) > 0 {
		a.next([]string{"fork", view.Thread, view.Checkpoint})
	}
	return nil
}

// showPlace shows what a graph, or a subgraph of it, has next and its values, and below that its subgraphs.
func (a *app) showPlace(view superstep.StateView, path []string) error {
	if len(view.Next) > 0 {
		a.printf("next  %s\n", clean(list(view.Next)))
	}
	t := newTable()
	for _, task := range view.Tasks {
		if said := taskSays(task); said != "" {
			t.row(task.Node, said)
		}
	}
	if err := t.writeTo(a.stdout, ""); err != nil {
		return err
	}
	a.showValues(view.Values)
	for _, task := range view.Tasks {
		if task.State == nil {
			continue
		}
		inner := append(append([]string{}, path...), task.Node)
		a.printf("\nin %s  step %d  checkpoint %s\n", clean(strings.Join(inner, "/")), task.State.Step, clean(task.State.Checkpoint))
		if err := a.showPlace(*task.State, inner); err != nil {
			return err
		}
	}
	return nil
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
