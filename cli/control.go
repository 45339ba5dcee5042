package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/cli/screen"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// control are the commands that do something to a run or its state.
type control struct{ *app }

// request is what is done to a run, by whom and why.
type request struct{ thread, reason, by, token, id string }

// controlling makes a command that does one thing to a run, with the flags of who asks for it. on returns what a token for that
// names besides the operation ([approval.Control.On]), nil for nothing; do makes the call, and show tells what came of it.
func controlling[View any](a control, c command, op approval.Op, on func(ctx context.Context, svc service, f proofFlags, thread string) (string, error),
	do func(ctx context.Context, svc service, r request) (View, error), show func(View)) *cobra.Command {
	var (
		f  proofFlags
		id string
	)
	flags := c.flags
	c.flags = func(set *pflag.FlagSet) {
		if flags != nil {
			flags(set)
		}
		f.register(set, true)
		if op == approval.OpPause || op == approval.OpUnpause {
			set.StringVar(&id, "id", "", "`ID` of this request, to repeat it safely (default: a new one)")
		}
	}
	c.run = func(ctx context.Context, args []string) error {
		if err := f.check(id); err != nil {
			return err
		}
		return call(ctx, a.app, func(svc service) (view View, err error) {
			about := ""
			if on != nil {
				if about, err = on(ctx, svc, f, args[0]); err != nil {
					return view, err
				}
			}
			r := request{thread: args[0], reason: f.reason, id: id}
			if r.by, r.token, err = a.prove(f, r.thread, op, about); err != nil {
				return view, err
			}
			return do(ctx, svc, r)
		}, show)
	}
	return a.build(c)
}

func (a control) retryCommand() *cobra.Command {
	var (
		f      proofFlags
		follow bool
	)
	return a.build(command{
		name: "retry",
		flags: func(flags *pflag.FlagSet) {
			f.register(flags, true)
			a.registerFollow(flags, &follow)
		},
		run: func(ctx context.Context, args []string) (err error) {
			req := thread.RetryRequest{Thread: args[0], Reason: f.reason}
			if err := f.check(""); err != nil {
				return err
			}
			if req.By, req.Token, err = a.prove(f, req.Thread, approval.OpRetry, ""); err != nil {
				return err
			}
			return a.withService(ctx, func(svc service) error {
				view, err := svc.Retry(ctx, req)
				if err != nil {
					return err
				}
				if follow {
					return a.follow(ctx, svc, view, false)
				}
				a.Show(view, func() {
					a.Printf("retrying  %s\n", screen.Clean(view.Thread))
					a.next(nextOf(view.Thread, thread.StatusRunning, nil)...)
				})
				return nil
			})
		},
	})
}

func (a control) drainCommand() *cobra.Command {
	later := ""
	return controlling(a, command{
		name: "drain",
	}, approval.OpDrain, nil, func(ctx context.Context, svc service, r request) (thread.View, error) {
		view, err := svc.Drain(ctx, thread.DrainRequest{Thread: r.thread, Reason: r.reason, By: r.by, Token: r.token})
		if err == nil && view.Status == thread.StatusPaused {
			later = drainsLater(ctx, svc, view)
		}
		return view, err
	}, func(view thread.View) { a.showDrained(view, later) })
}

// drainsLater says what a run that is paused does about a drain: one that was paused within a superstep stops behind it, and its
// audit has that. It is "" for one that rests for another reason too: it has stopped already. The audit is read by who has the graph.
func drainsLater(ctx context.Context, svc service, view thread.View) string {
	entries, _, err := svc.Audit(ctx, view.Thread)
	taken := func(e approval.Entry) bool { return e.Kind == approval.KindDrained && !e.At.Before(view.Paused.At) }
	switch {
	case err != nil:
		return "it is paused: if that was within a step, it stops before the next one once it is unpaused"
	case slices.ContainsFunc(entries, taken):
		return "it is paused, and stops before its next step once it is unpaused"
	}
	return ""
}

// showDrained shows where a run stands that was asked to stop; later is what one that is paused does about it, "" for nothing.
func (a control) showDrained(view thread.View, later string) {
	threadID := screen.Clean(view.Thread)
	switch {
	case view.Status == thread.StatusStopped:
		a.Printf("drained  %s  stands behind step %d%s\n", threadID, view.Step, before(view.Nodes))
		a.next(goOn(view.Graph, view.Thread)...)
	case view.Status == thread.StatusRunning:
		a.Printf("draining  %s  step %d is still under way\n", threadID, view.Step)
		a.next("show", view.Thread)
	case later != "":
		a.Printf("draining  %s  %s\n", threadID, later)
		a.next("unpause", view.Thread)
	default:
		a.Printf("nothing to drain  %s is %s\n", threadID, view.Status)
	}
}

func (a control) pauseCommand() *cobra.Command {
	return a.pausing(command{
		name: "pause",
	}, approval.OpPause, nil, service.Pause, a.showPaused)
}

func (a control) unpauseCommand() *cobra.Command {
	// A token to unpause names the pause that it ends. Without a key no token is made, and nothing is to be named.
	on := func(ctx context.Context, svc service, f proofFlags, thread string) (string, error) {
		if !a.signs(f) {
			return "", nil
		}
		return pausedOn(ctx, svc, thread)
	}
	return a.pausing(command{
		name: "unpause",
	}, approval.OpUnpause, on, service.Unpause, a.showUnpaused)
}

// pausing makes one of the two commands.
func (a control) pausing(c command, op approval.Op, on func(context.Context, service, proofFlags, string) (string, error),
	do func(service, context.Context, thread.PauseRequest) (thread.PauseReply, error), show func(thread.PauseReply)) *cobra.Command {
	return controlling(a, c, op, on, func(ctx context.Context, svc service, r request) (thread.PauseReply, error) {
		return do(svc, ctx, thread.PauseRequest{Thread: r.thread, Reason: r.reason, By: r.by, Token: r.token, ID: r.id})
	}, show)
}

func (a control) showPaused(reply thread.PauseReply) {
	threadID := screen.Clean(reply.Thread)
	switch {
	case reply.Stored:
		a.Printf("stored   %s  it is paused as soon as a worker runs\n", threadID)
	case reply.Paused == nil:
		a.Printf("nothing to pause  %s is %s\n", threadID, reply.Status)
		return
	case !reply.Changed:
		a.Printf("paused   %s  before%s\n", threadID, byText(reply.Paused.By, reply.Paused.Reason))
	case reply.Status == thread.StatusPaused:
		a.Printf("paused   %s\n", threadID)
	default:
		a.Printf("pausing  %s  what is under way ends first\n", threadID)
	}
	a.next("unpause", reply.Thread)
}

func (a control) showUnpaused(reply thread.PauseReply) {
	thread := screen.Clean(reply.Thread)
	switch {
	case reply.Stored:
		a.Printf("stored    %s  it goes on as soon as a worker runs\n", thread)
	case !reply.Changed:
		a.Printf("nothing to unpause  %s is %s\n", thread, reply.Status)
		return
	default:
		a.Printf("unpaused  %s  it is %s\n", thread, reply.Status)
	}
	a.next("show", reply.Thread)
}

// pauseFact is who paused a run, when and why.
func (a *app) pauseFact(p thread.PauseView) string {
	return strings.TrimPrefix(byText(p.By, ""), ", ") + " " + a.MomentAgo(p.At) + screen.Colon(p.Reason)
}

// byText says who did something and why, "" when neither is known.
func byText(who, reason string) string {
	if who != "" {
		who = ", by " + screen.Clean(who)
	}
	return who + screen.Colon(reason)
}

// cancelModes are the values of cancel --mode.
var cancelModes = []thread.CancelMode{thread.CancelKeep, thread.CancelDrop, thread.CancelCompensate}

func (a control) cancelCommand() *cobra.Command {
	var (
		mode thread.CancelMode
		open bool
	)
	return controlling(a, command{
		name: "cancel",
		flags: func(flags *pflag.FlagSet) {
			choiceVar(flags, &mode, "mode", thread.CancelKeep, cancelModes, "keep, drop or compensate")
		},
	}, approval.OpCancel, func(context.Context, service, proofFlags, string) (string, error) { return string(mode), nil },
		func(ctx context.Context, svc service, r request) (thread.View, error) {
			open = isOpen(ctx, svc, r.thread)
			return svc.Cancel(ctx, thread.CancelRequest{Thread: r.thread, Mode: mode, Reason: r.reason, By: r.by, Token: r.token})
		}, func(view thread.View) { a.showCancelled(view, open) })
}

// lookBefore bounds a look at a run that is about to be cancelled: that does not wait for it.
const lookBefore = time.Second

// isOpen reports whether the thread's run is open, as far as that is known soon.
func isOpen(ctx context.Context, svc service, threadID string) bool {
	ctx, cancel := context.WithTimeout(ctx, lookBefore)
	defer cancel()
	view, err := svc.Show(ctx, threadID)
	return err == nil && view.Closed.IsZero()
}

// showCancelled tells a run that is over from one whose nodes are still stopping, and one that waits for people; open says that it was
// not closed before.
func (a control) showCancelled(view thread.View, open bool) {
	threadID := screen.Clean(view.Thread)
	undoing := view.Cancel != nil && view.Cancel.Mode == thread.CancelCompensate
	switch {
	case view.Status == thread.StatusCancelled:
		a.Printf("cancelled  %s%s\n", threadID, undoneNote(view.Cancel))
		a.showLeft(view.Cancel)
		if of, subjob := job.OfAttempt(view.Thread); subjob != "" { // what follows is its leader's to decide
			a.next("job", "show", of)
			return
		}
		a.next("retry", view.Thread)
	case open && view.Status == thread.StatusFinished && !view.Closed.IsZero():
		a.Printf("closed  %s  it had finished, and takes no more input in that run\n", threadID)
		a.next("show", view.Thread)
	case view.Status != thread.StatusRunning && !view.Status.Rests() && !view.Held:
		a.Printf("nothing to cancel  %s is %s\n", threadID, view.Status)
	case undoing && len(view.Questions) > 0:
		a.Printf("cancelling  %s%s; %d could not be undone and need a person\n", threadID, undoneNote(view.Cancel), len(view.Questions))
		a.showQuestions(view.Questions)
		a.nextAfterLook(view.Thread, view.Status, view.Questions)
	default:
		waits := a.waitNote(view.Cancel)
		if waits != "" {
			waits = "; waits " + waits
		}
		a.Printf("cancelling  %s  still %s%s\n", threadID, view.Status, waits)
		a.next("show", view.Thread)
	}
}

// undoneNote says how many effects were undone.
func undoneNote(c *thread.CancelView) string {
	if c == nil || c.Mode != thread.CancelCompensate {
		return ""
	}
	return "  " + english.Plural(c.Undone, "effect", "") + " undone"
}

// waitNote says until when a cancellation waits, and for what; "" when it does not wait.
func (a *app) waitNote(c *thread.CancelView) string {
	if c == nil || c.Waits == nil {
		return ""
	}
	return fmt.Sprintf("until %s: an earlier call of %s (key %s) may show at the target until then", a.Moment(c.Waits.Until),
		screen.Clean(c.Waits.Effect), screen.Clean(c.Waits.Key))
}

// showLeft lists the effects that a cancellation did not undo.
func (a *app) showLeft(c *thread.CancelView) {
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
	screen.Section(a.Screen, c.Left, func(l thread.LeftEffect) screen.Row {
		return screen.Row{l.Key, l.Effect, l.Node, screen.Brief(l.Reason)}
	}, "NOT UNDONE", "EFFECT", "NODE", "REASON")
	if c.More > 0 {
		a.Printf("and %d more: %s lists all\n", c.More, a.program+" effects")
	}
}

// cancelFact says how a run was cancelled, "" when there is nothing to say.
func cancelFact(c *thread.CancelView) string {
	if c == nil || c.Mode == thread.CancelKeep {
		return ""
	}
	return string(c.Mode) + undoneNote(c) + byText(c.By, c.Reason)
}
