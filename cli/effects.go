package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"superstep.dev"
)

func (a *app) effectsCommand() *cobra.Command {
	return a.build(command{
		use: "effects THREAD", short: "Show what a thread did outside", group: groupLook, args: []string{"THREAD"},
		about: `One line an effect, in the order in which they were begun: those of all runs of the thread, of tasks under way, and of
runs that failed or were cancelled. STATE is intent (it may have been called), committed, failed (the outside refused
it), unknown (a person has to say) or compensated (it was undone).`,
		example: []string{"effects r-7", "effects r-7 -o json"},
		run: func(cmd *cobra.Command, args []string) error {
			call := func(svc service, ctx context.Context, thread string) (superstep.EffectsView, error) {
				view, err := svc.Effects(ctx, superstep.EffectsRequest{Thread: thread})
				view.Effects = append([]superstep.EffectView{}, view.Effects...) // an empty list for none
				return view, err
			}
			return onThread(a, cmd.Context(), args[0], call, a.showThreadEffects)
		},
	})
}

func (a *app) showThreadEffects(view superstep.EffectsView) error {
	if len(view.Effects) == 0 {
		a.printf("no effects\n")
	} else {
		t := a.statusTable("KEY", "EFFECT", "STATE", "ATTEMPTS", "RECEIPT", "EVIDENCE", "NODE", "STEP", "TIME", "RUN")
		for _, e := range view.Effects {
			at := ""
			if !e.Time.IsZero() {
				at = a.moment(e.Time)
			}
			t.row(e.Key, e.Effect, e.State, fmt.Sprint(e.Attempts), cell(e.Receipt), e.Evidence, e.Node, fmt.Sprint(e.Step), at, e.Run)
		}
		if err := t.writeTo(a.stdout, ""); err != nil {
			return err
		}
	}
	switch {
	case view.Gone == 1:
		a.printf("an earlier run is gone: what it did is not listed\n")
	case view.Gone > 1:
		a.printf("%d earlier runs are gone: what they did is not listed\n", view.Gone)
	}
	return nil
}
