package cli

import (
	"context"

	"superstep.dev"
)

// follow shows a run until it waits, stops or ends, and ends the command with the code of that. named says that the
// thread's id was made here, so that the user has not seen it yet.
func (a *app) follow(ctx context.Context, svc service, started superstep.ThreadView, named bool) error {
	thread := started.Thread
	show := a.progressLines()
	if named && !a.json() {
		a.printf("thread  %s\n", clean(thread))
	}
	view, err := svc.Follow(ctx, started, show)
	if err != nil {
		return interrupted(ctx, err, "no longer following; run "+thread+" goes on. Look: "+a.commandLine("show", thread))
	}
	if a.json() {
		if err := a.writeJSONLine(view); err != nil {
			return err
		}
		return exitWith(exitOfRun(view.Status))
	}
	a.showEnd(view)
	if send := sendNext(view); send != nil {
		a.next(send)
	} else {
		a.next(nextOf(thread, view.Status, view.Questions))
	}
	return exitWith(exitOfRun(view.Status))
}

// progressLines returns what shows each line of a followed run.
func (a *app) progressLines() func(superstep.Progress) {
	if a.json() {
		return func(p superstep.Progress) {
			if err := a.writeJSONLine(p); err != nil {
				a.stdout.fail(err) // a value that is no JSON; reported when the command is over
			}
		}
	}
	screen := newFollowScreen(a.stdout)
	screen.colours = a.colours
	return screen.show
}

// showEnd shows how a followed run ended. What a waiting run asks is on the screen already.
func (a *app) showEnd(view superstep.ThreadView) {
	switch view.Status {
	case superstep.StatusWaiting, superstep.StatusWaitingEvent:
	case superstep.StatusFinished:
		a.printf("%s\n", a.status("finished"))
		a.showValues(view.Output)
	case superstep.StatusPaused:
		a.printf("%s%s%s\n", a.status("paused"), pausedOf(view), before(view.Nodes))
	case superstep.StatusStopped:
		a.printf("%s%s\n", a.status(whyStopped(view)), before(view.Nodes))
	default:
		held := ""
		if view.Held {
			held = ", held open"
		}
		a.printf("%s%s%s\n", a.status(string(view.Status)), held, colon(first(view.Error, view.Problem)))
	}
}

// whyStopped says why a run stands still that asks nothing.
func whyStopped(view superstep.ThreadView) string {
	if view.Drained != "" {
		return "drained" + colon(view.Drained)
	}
	return "stopped"
}

// before names the nodes that a stopped run has ahead.
func before(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return ", next " + clean(list(nodes))
}

// colon puts a reason behind a word.
func colon(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + clean(reason)
}
