package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
)

// pauseFlags are the flags of pause and unpause.
type pauseFlags struct {
	askFlags
	id string
}

func (a *app) pauseCommand() *cobra.Command {
	return a.pausing(command{
		use: "pause THREAD", short: "Keep a run from starting anything", group: groupRuns, args: []string{"THREAD"},
		about: `Nodes under way end and are kept; nothing else begins before unpause, whatever is restarted meanwhile. The run
takes answers and updates of its state, and goes on with them later. Without a worker the request is stored.`,
		example: []string{`pause r-7 --reason "the books are closed"`},
	}, approval.OpPause, service.Pause, a.showPaused)
}

func (a *app) unpauseCommand() *cobra.Command {
	return a.pausing(command{
		use: "unpause THREAD", short: "Let a paused run go on", group: groupRuns, args: []string{"THREAD"},
		about: `It goes on where it was paused, with what it was told meanwhile. Answers are given with resume. Where the workers' rules
are about that, whoever asks proves it with a token for this pause, and may still do so now.`,
		example: []string{`unpause r-7`},
	}, approval.OpUnpause, service.Unpause, a.showUnpaused)
}

// pausing builds one of the two commands.
func (a *app) pausing(c command, op approval.Op, call func(service, context.Context, superstep.PauseRequest) (superstep.PauseReply, error),
	show func(superstep.PauseReply) error) *cobra.Command {
	var f pauseFlags
	c.run = func(cmd *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		req := superstep.PauseRequest{Thread: args[0], Reason: f.reason, ID: f.id}
		ask := func(svc service, ctx context.Context, _ string) (reply superstep.PauseReply, err error) {
			control := approval.Control{Op: op}
			if op == approval.OpUnpause && (f.key != "" || a.signs()) {
				if control.On, err = pausedOn(ctx, svc, args[0]); err != nil {
					return reply, err
				}
			}
			if req.By, req.Token, err = a.asker(f.askFlags, args[0], control); err != nil {
				return reply, err
			}
			return call(svc, ctx, req)
		}
		return onThread(a, cmd.Context(), args[0], ask, show)
	}
	cmd := a.build(c)
	cmd.Flags().SortFlags = false
	f.register(cmd.Flags(), true)
	cmd.Flags().StringVar(&f.id, "id", "", "`ID` of this request, to repeat it safely (default: a new one)")
	return cmd
}

// check refuses what no run takes.
func (f *pauseFlags) check() error {
	if len(f.id) > maxThreadID {
		return usagef("--id has at most %d bytes", maxThreadID)
	}
	return f.askFlags.check()
}

func (a *app) showPaused(reply superstep.PauseReply) error {
	thread := clean(reply.Thread)
	switch {
	case reply.Stored:
		a.printf("stored   %s  it is paused as soon as a worker runs\n", thread)
	case reply.Paused == nil:
		a.printf("nothing to pause  %s is %s\n", thread, reply.Status)
		return nil
	case !reply.Changed:
		a.printf("paused   %s  before%s\n", thread, pausedText(*reply.Paused))
	case reply.Status == superstep.StatusPaused:
		a.printf("paused   %s\n", thread)
	default:
		a.printf("pausing  %s  what is under way ends first\n", thread)
	}
	a.next([]string{"unpause", reply.Thread})
	return nil
}

func (a *app) showUnpaused(reply superstep.PauseReply) error {
	thread := clean(reply.Thread)
	switch {
	case reply.Stored:
		a.printf("stored    %s  it goes on as soon as a worker runs\n", thread)
	case !reply.Changed:
		a.printf("nothing to unpause  %s is %s\n", thread, reply.Status)
		return nil
	default:
		a.printf("unpaused  %s  it is %s\n", thread, reply.Status)
	}
	a.next([]string{"show", reply.Thread})
	return nil
}

// pausedOf is pausedText of a view.
func pausedOf(view superstep.ThreadView) string {
	if view.Paused == nil {
		return ""
	}
	return pausedText(*view.Paused)
}

// pauseFact is who paused a run, when and why.
func (a *app) pauseFact(p superstep.PauseView) string {
	return strings.TrimPrefix(pausedText(superstep.PauseView{By: p.By}), ", ") + " " + a.moment(p.At) + ", " + a.ago(p.At) + colon(p.Reason)
}

// pauseNote is the same for a line of a list.
func pauseNote(p superstep.PauseView) string { return strings.TrimPrefix(pausedText(p), ", ") }

// pausedText says who paused a run and why, "" when neither is known.
func pausedText(p superstep.PauseView) string {
	text := ""
	if p.By != "" {
		text = ", by " + clean(p.By)
	}
	return text + colon(p.Reason)
}
