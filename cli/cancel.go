package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
)

// cancelModes are the values of cancel --mode.
var cancelModes = []string{string(superstep.CancelKeep), string(superstep.CancelDrop), string(superstep.CancelCompensate)}

func (a *app) cancelCommand() *cobra.Command {
	var mode string
	var f askFlags
	cmd := a.build(command{
		use: "cancel THREAD", short: "Cancel a run", group: groupRuns, args: []string{"THREAD"},
		about: `Running nodes are told to stop and may clean up; the run is cancelled when they have. What becomes of what it did:
  keep        what finished is kept, and retry goes on from there
  drop        the step under way is forgotten, with its questions; retry runs it anew; effects that were made stay
  compensate  as drop, and the effects of the thread since it last finished are undone, the newest first. The thread then
              stands before the oldest of them: retry makes them anew. For those that no program can undo the run waits
              for a person: resume answers done, repeat or leave; cancel ends it
Drop and compensate also clean up behind a run that has failed.`,
		example: []string{`cancel r-7 --reason "ordered twice"`, "cancel r-7 --mode compensate"},
		run: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if !slices.Contains(cancelModes, mode) {
				return usagef("--mode %s is unknown; it is keep, drop or compensate", quoted(mode))
			}
			call := func(svc service, ctx context.Context, thread string) (superstep.ThreadView, error) {
				by, token, err := a.asker(f, thread, approval.Control{Op: approval.OpCancel, On: mode})
				if err != nil {
					return superstep.ThreadView{}, err
				}
				return svc.CancelWith(ctx, superstep.CancelRequest{Thread: thread, Reason: f.reason, Mode: superstep.CancelMode(mode),
					By: by, Token: token})
			}
			return onThread(a, cmd.Context(), args[0], call, a.showCancelled)
		},
	})
	cmd.Flags().StringVar(&mode, "mode", string(superstep.CancelKeep), "keep, drop or compensate")
	f.register(cmd.Flags(), true)
	choices(cmd, "mode", cancelModes...)
	return cmd
}

// showCancelled tells a run that is over from one whose nodes are still stopping, and one that waits for people.
func (a *app) showCancelled(view superstep.ThreadView) error {
	undoing := view.Cancel != nil && view.Cancel.Mode == superstep.CancelCompensate
	switch {
	case view.Status == superstep.StatusCancelled:
		a.printf("cancelled  %s%s\n", clean(view.Thread), undoneNote(view.Cancel))
		if err := a.showLeft(view.Cancel); err != nil {
			return err
		}
		a.next([]string{"retry", view.Thread})
	case view.Status != superstep.StatusRunning && !view.Status.Rests() && !view.Held:
		a.printf("nothing to cancel  %s is %s\n", clean(view.Thread), view.Status)
	case undoing && len(view.Questions) > 0:
		a.printf("cancelling  %s%s; %d could not be undone and need a person\n", clean(view.Thread), undoneNote(view.Cancel),
			len(view.Questions))
		if err := a.showQuestions(view.Questions); err != nil {
			return err
		}
		a.nextAfterLook(view.Thread, view.Status, view.Questions)
	default:
		waits := a.waitNote(view.Cancel)
		if waits != "" {
			waits = "; waits " + waits
		}
		a.printf("cancelling  %s  still %s%s\n", clean(view.Thread), view.Status, waits)
		a.next([]string{"show", view.Thread})
	}
	return nil
}

// undoneNote says how many effects were undone.
func undoneNote(c *superstep.CancelView) string {
	switch {
	case c == nil || c.Mode != superstep.CancelCompensate:
		return ""
	case c.Undone == 1:
		return "  1 effect undone"
	default:
		return fmt.Sprintf("  %d effects undone", c.Undone)
	}
}

// waitNote says until when a cancellation waits, and for what; "" when it does not wait.
func (a *app) waitNote(c *superstep.CancelView) string {
	if c == nil || c.Waits == nil {
		return ""
	}
	return fmt.Sprintf("until %s: an earlier call of %s (key %s) may show at the target until then", a.moment(c.Waits.Until),
		clean(c.Waits.Effect), clean(c.Waits.Key))
}

// showLeft lists the effects that a cancellation did not undo.
func (a *app) showLeft(c *superstep.CancelView) error {
	if c == nil {
		return nil
	}
	if c.Halted != "" {
		a.printf("the thread cannot go on by itself: %s\n", clean(c.Halted))
	}
	if c.Checkpoint != "" {
		a.printf("it stands at %s, before the oldest write that was undone: retry makes those writes anew\n", clean(c.Checkpoint))
	}
	if c.Problem != "" {
		a.printf("not all effects were looked at: %s\n", clean(c.Problem))
	}
	if c.Gone > 0 {
		a.printf("earlier runs are gone (%d): what they did was not undone\n", c.Gone)
	}
	if len(c.Left) == 0 {
		return nil
	}
	a.printf("\n")
	t := newTable("NOT UNDONE", "EFFECT", "NODE", "REASON")
	for _, l := range c.Left {
		t.row(l.Key, l.Effect, l.Node, shorten(l.Reason, cellWidth))
	}
	if err := t.writeTo(a.stdout, ""); err != nil {
		return err
	}
	if c.More > 0 {
		a.printf("and %d more: %s lists all\n", c.More, a.program+" effects")
	}
	return nil
}

// cancelFact says how a run was cancelled, "" when there is nothing to say.
func cancelFact(c *superstep.CancelView) string {
	if c == nil || c.Mode == superstep.CancelKeep {
		return ""
	}
	text := string(c.Mode) + undoneNote(c)
	if c.By != "" {
		text += ", by " + c.By
	}
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}
