package cli

import (
	"cmp"
	"context"

	"superstep.dev"
	"superstep.dev/cli/screen"
)

// follow shows a run until it waits, stops or ends, and ends the command with the code of that. named says that the
// thread's id was made here, so that the user has not seen it yet.
func (a *app) follow(ctx context.Context, svc service, since superstep.ThreadView, named bool) error {
	thread := since.Thread
	if named && !a.JSON() {
		a.Printf("thread  %s\n", screen.Clean(thread))
	}
	view, err := svc.Follow(ctx, since, a.Followed().Show)
	if err != nil {
		return interrupted(ctx, err, "no longer following; run "+thread+" goes on. Look: "+a.commandLine("show", thread))
	}
	a.ShowLine(view, func() {
		a.showEnd(view)
		a.next(nextOfView(view, view.Questions)...)
	})
	return exitWith(exitOfRun(view.Status))
}

// showEnd shows how a followed run ended. What a waiting run asks is on the screen already.
func (a *app) showEnd(view superstep.ThreadView) {
	switch view.Status {
	case superstep.StatusWaiting, superstep.StatusWaitingEvent:
	case superstep.StatusFinished:
		a.Printf("%s\n", a.Status("finished"))
		a.Values(view.Output)
	case superstep.StatusPaused:
		paused := ""
		if view.Paused != nil {
			paused = pausedText(*view.Paused)
		}
		a.Printf("%s%s%s\n", a.Status("paused"), paused, before(view.Nodes))
	case superstep.StatusStopped:
		a.Printf("%s%s\n", a.Status(whyStopped(view)), before(view.Nodes))
	default:
		held := ""
		if view.Held {
			held = ", held open"
		}
		a.Printf("%s%s%s\n", a.Status(string(view.Status)), held, screen.Colon(cmp.Or(view.Error, view.Problem)))
	}
}

// whyStopped says why a run stands still that asks nothing.
func whyStopped(view superstep.ThreadView) string {
	if view.Drained != "" {
		return "drained" + screen.Colon(view.Drained)
	}
	return "stopped"
}

// before names the nodes that a stopped run has ahead.
func before(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return ", next " + screen.Clean(screen.List(nodes))
}
