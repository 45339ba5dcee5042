package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

// registerFollow adds --follow to a command that makes a run go on.
func (a *app) registerFollow(flags *pflag.FlagSet, follow *bool) {
	flags.BoolVar(follow, "follow", false, "show the run until it waits or ends")
	flags.BoolVarP(&a.Verbose, "verbose", "v", false, "with --follow: a line for each task of a Send, not their count")
}

// follow shows a run until it waits, stops or ends, and ends the command with the code of that. named says that the
// thread's id was made here, so that the user has not seen it yet.
func (a *app) follow(ctx context.Context, svc service, since thread.View, named bool) error {
	return a.followFrom(ctx, svc, since, named, 0)
}

// followFrom is follow without the lines of supersteps before one.
func (a *app) followFrom(ctx context.Context, svc service, since thread.View, named bool, first int) error {
	id := since.Thread
	if named && !a.JSON() {
		a.Printf("thread  %s\n", screen.Clean(id))
	}
	shown := a.Followed()
	show := func(p thread.Progress) {
		if p.Step == 0 || p.RootStep() >= first {
			shown.Show(p)
		}
	}
	stop := a.listen(ctx, id, shown)
	view, err := svc.Follow(ctx, since, show)
	stop()
	shown.Close()
	if err != nil {
		return interrupted(ctx, err, "no longer following; run "+id+" goes on. Look: "+a.commandLine("show", id))
	}
	a.ShowLine(view, func() {
		a.showEnd(view)
		a.next(followed(nextOfView(view, view.Questions))...)
	})
	return exitWith(exitOfRun(view.Status))
}

// listen shows what nodes emit while they run, where something carries that, until stop is called.
func (a *app) listen(ctx context.Context, thread string, shown *screen.Followed) (stop func()) {
	if a.JSON() || a.tokens == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	emitted, err := a.tokens.Subscribe(ctx, thread)
	if err != nil {
		cancel()
		return func() {} // it comes with the steps
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range emitted {
			shown.Live(e)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// showEnd shows how a followed run ended. What a waiting run asks is on the screen already.
func (a *app) showEnd(view thread.View) {
	switch view.Status {
	case thread.StatusWaiting, thread.StatusWaitingEvent:
	case thread.StatusFinished:
		a.Printf("%s\n", a.Status("finished"))
		a.Values(view.Output)
	case thread.StatusPaused:
		paused := ""
		if view.Paused != nil {
			paused = byText(view.Paused.By, view.Paused.Reason)
		}
		a.Printf("%s%s%s\n", a.Status("paused"), paused, before(view.Nodes))
	case thread.StatusStopped:
		why := "stopped"
		if view.Drained != "" {
			why = "drained" + screen.Colon(view.Drained)
		}
		a.Printf("%s%s\n", a.Status(why), before(view.Nodes))
	default:
		held := ""
		if view.Held {
			held = ", held open"
		}
		a.Printf("%s%s%s\n", a.Status(string(view.Status)), held, screen.Colon(cmp.Or(view.Error, view.Problem)))
	}
}

// before names the nodes that a stopped run has ahead.
func before(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return ", next " + screen.Clean(screen.List(nodes))
}

// commandLine returns a command that can be typed as it stands: quoted for a shell, and with the connection flags that
// this command was given.
func (a *app) commandLine(args ...string) string {
	program := a.program
	if a.spell != nil {
		program, args = a.spell(args)
	}
	words := append([]string{program}, args...)
	words = append(words, a.conn.given()...)
	if a.conn.archive != "" {
		words = append(words, "--archive", a.conn.archive)
	}
	for i, w := range words {
		words[i] = screen.ShellQuote(w)
	}
	return strings.Join(words, " ")
}

// next prints what to type next. Programs that read JSON have the view to decide by.
func (a *app) next(args ...string) {
	if len(args) > 0 && !a.JSON() && a.conn.archive == "" { // what is archived goes on nowhere
		a.Printf("Next: %s\n", a.commandLine(args...))
	}
}

// followed is a command that takes a thread further, for somebody who watches it.
func followed(line []string) []string {
	if len(line) > 0 && (line[0] == "resume" || line[0] == "retry") {
		return append(line, "--follow")
	}
	return line
}

// nextAfterLook prints what to type next after a look at a thread: not the same look again.
func (a *app) nextAfterLook(thread string, status thread.Status, questions []thread.Question) {
	if next := nextOf(thread, status, questions); len(next) > 0 && next[0] != "show" {
		a.next(next...)
	}
}

// nextOf returns the command that takes a thread further, nil when there is nothing to do. A run in progress needs
// only to be looked at.
func nextOf(threadID string, status thread.Status, questions []thread.Question) []string {
	switch {
	case status == thread.StatusPaused:
		return []string{"unpause", threadID}
	case len(questions) > 0:
		q := questions[0]
		if q.Approval != nil {
			return []string{"question", threadID, q.ID}
		}
		return answerLine(threadID, q)
	case status == thread.StatusStopped:
		return []string{"resume", threadID}
	case status.Failed(), status == thread.StatusTerminated, status == thread.StatusCancelled:
		return []string{"retry", threadID}
	case status == thread.StatusRunning, status == thread.StatusWaiting, status == thread.StatusWaitingEvent:
		return []string{"show", threadID}
	default:
		return nil
	}
}

// nextOfView is nextOf a thread that may wait for an event: the command that sends the first one.
func nextOfView(view thread.View, questions []thread.Question) []string {
	if view.Status != thread.StatusWaitingEvent || len(view.Waits) == 0 {
		return nextOf(view.Thread, view.Status, questions)
	}
	w := view.Waits[0]
	line := []string{"event", view.Thread, w.Event}
	if value := screen.SampleAnswer(w.Schema); value != "null" {
		line = append(line, "--value", value)
	}
	return line
}

// answerLine is the command that answers a question, with an answer to edit.
func answerLine(thread string, q thread.Question) []string {
	return []string{"resume", thread, q.ID, "--value", screen.SampleAnswer(q.Schema)}
}

// goOn is the command with which a thread that stands still goes on.
func goOn(graph, thread string) []string {
	return []string{"run", graph, "--thread", thread, "--follow"}
}
