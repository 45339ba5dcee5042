package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"superstep.dev"
)

func (a *app) stateCommand() *cobra.Command {
	return a.build(command{
		use: "state THREAD", short: "Show a thread's values", group: groupLook, args: []string{"THREAD"},
		about:   `The value of every channel at the newest checkpoint. Long values are cut; -o json has them whole.`,
		example: []string{"state r-7", "state r-7 -o json | jq .values.amount"},
		run: func(cmd *cobra.Command, args []string) error {
			return onThread(a, cmd.Context(), args[0], service.State, a.showState)
		},
	})
}

func (a *app) showState(view superstep.StateView) error {
	a.printf("%s  %s  step %d  checkpoint %s\n", clean(view.Thread), view.Status, view.Step, clean(view.Checkpoint))
	if len(view.Next) > 0 {
		a.printf("next  %s\n", clean(list(view.Next)))
	}
	a.showValues(view.Values)
	if err := a.showQuestions(view.Questions); err != nil {
		return err
	}
	a.nextAfterLook(view.Thread, view.Status, view.Questions)
	return nil
}

func (a *app) historyCommand() *cobra.Command {
	return a.build(command{
		use: "history THREAD", short: "Show a thread's checkpoints", group: groupLook, args: []string{"THREAD"},
		about:   `One line a checkpoint, the newest first: what ran, what it wrote, what came next.`,
		example: []string{"history r-7", "history r-7 -o json"},
		run: func(cmd *cobra.Command, args []string) error {
			return onThread(a, cmd.Context(), args[0], historyOf, a.showHistory)
		},
	})
}

// historyOf is [service.History] with an empty list for none.
func historyOf(svc service, ctx context.Context, thread string) ([]superstep.CheckpointView, error) {
	views, err := svc.History(ctx, thread)
	return append([]superstep.CheckpointView{}, views...), err
}

func (a *app) showHistory(views []superstep.CheckpointView) error {
	t := newTable("STEP", "CHECKPOINT", "SOURCE", "RAN", "WROTE", "NEXT")
	for _, v := range views {
		t.row(fmt.Sprint(v.Step), v.Checkpoint, v.Source, list(v.Ran), list(v.Wrote), list(v.Next))
	}
	return t.writeTo(a.stdout, "")
}
