package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/cli/screen"
)

// cancelModes are the values of cancel --mode.
var cancelModes = []superstep.CancelMode{superstep.CancelKeep, superstep.CancelDrop, superstep.CancelCompensate}

func (a control) cancelCommand() *cobra.Command {
	var mode superstep.CancelMode
	return controlling(a, command{
		use: "cancel THREAD", short: "Cancel a run",
		about: `Running nodes are told to stop and may clean up; the run is cancelled when they have. What becomes of what it did:
  keep        what finished is kept, and retry goes on from there
  drop        the step under way is forgotten, with its questions; retry runs it anew; effects that were made stay
  compensate  as drop, and the effects of the thread since it last finished are undone, the newest first. The thread then
              stands before the oldest of them: retry makes them anew. For those that no program can undo the run waits
              for a person: resume answers done, repeat or leave; cancel ends it
Drop and compensate also clean up behind a run that has failed.`,
		example: []string{`cancel r-7 --reason "ordered twice"`, "cancel r-7 --mode compensate"},
		flags: func(flags *pflag.FlagSet) {
			choiceVar(flags, &mode, "mode", superstep.CancelKeep, cancelModes, "keep, drop or compensate")
		},
	}, approval.OpCancel, func(context.Context, service, proofFlags, string) (string, error) { return string(mode), nil },
		func(ctx context.Context, svc service, r asked) (superstep.ThreadView, error) {
			return svc.CancelWith(ctx, superstep.CancelRequest{Thread: r.thread, Mode: mode, Reason: r.reason, By: r.by, Token: r.token})
		}, a.showCancelled)
}

// showCancelled tells a run that is over from one whose nodes are still stopping, and one that waits for people.
func (a control) showCancelled(view superstep.ThreadView) {
	thread := screen.Clean(view.Thread)
	undoing := view.Cancel != nil && view.Cancel.Mode == superstep.CancelCompensate
	switch {
	case view.Status == superstep.StatusCancelled:
		a.Printf("cancelled  %s%s\n", thread, undoneNote(view.Cancel))
		a.showLeft(view.Cancel)
		a.next("retry", view.Thread)
	case view.Status != superstep.StatusRunning && !view.Status.Rests() && !view.Held:
		a.Printf("nothing to cancel  %s is %s\n", thread, view.Status)
	case undoing && len(view.Questions) > 0:
		a.Printf("cancelling  %s%s; %d could not be undone and need a person\n", thread, undoneNote(view.Cancel), len(view.Questions))
		a.showQuestions(view.Questions)
		a.nextAfterLook(view.Thread, view.Status, view.Questions)
	default:
		waits := a.waitNote(view.Cancel)
		if waits != "" {
			waits = "; waits " + waits
		}
		a.Printf("cancelling  %s  still %s%s\n", thread, view.Status, waits)
		a.next("show", view.Thread)
	}
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
	return fmt.Sprintf("until %s: an earlier call of %s (key %s) may show at the target until then", a.Moment(c.Waits.Until),
		screen.Clean(c.Waits.Effect), screen.Clean(c.Waits.Key))
}

// showLeft lists the effects that a cancellation did not undo.
func (a *app) showLeft(c *superstep.CancelView) {
	if c == nil {
		return
	}
	if c.Halted != "" {
		a.Printf("the thread cannot go on by itself: %s\n", screen.Clean(c.Halted))
	}
	if c.Checkpoint != "" {
		a.Printf("it stands at %s, before the oldest write that was undone: retry makes those writes anew\n", screen.Clean(c.Checkpoint))
	}
	if c.Problem != "" {
		a.Printf("not all effects were looked at: %s\n", screen.Clean(c.Problem))
	}
	if c.Gone > 0 {
		a.Printf("earlier runs are gone (%d): what they did was not undone\n", c.Gone)
	}
	screen.Section(a.Screen, c.Left, func(l superstep.LeftEffect) screen.Row {
		return screen.Row{l.Key, l.Effect, l.Node, screen.Brief(l.Reason)}
	}, "NOT UNDONE", "EFFECT", "NODE", "REASON")
	if c.More > 0 {
		a.Printf("and %d more: %s lists all\n", c.More, a.program+" effects")
	}
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
