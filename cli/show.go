package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// looks are the commands that look and change nothing.
type looks struct{ *app }

func (a looks) showCommand() *cobra.Command {
	var (
		follow bool
		from   string
	)
	return a.build(command{
		name: "show",
		flags: func(flags *pflag.FlagSet) {
			a.archived(flags)
			a.registerFollow(flags, &follow)
			flags.StringVar(&from, "from", "", "with --follow: from this `STEP` on, 1 for all of the newest run (default: from now)")
		},
		run: func(ctx context.Context, args []string) error {
			first, err := a.checkFollow(follow, from)
			if err != nil {
				return err
			}
			if follow {
				return a.withService(ctx, func(svc service) error { return a.followThread(ctx, svc, args[0], first) })
			}
			return call(ctx, a.app, func(svc service) (thread.View, error) { return svc.Show(ctx, args[0]) }, a.showThread)
		},
	})
}

// checkFollow returns the superstep from which a run is to be followed, 0 for now.
func (a looks) checkFollow(follow bool, from string) (first int, err error) {
	switch {
	case !follow && from != "":
		return 0, usagef("--from is for show --follow")
	case !follow && a.Verbose:
		return 0, usagef("--verbose is for show --follow")
	case follow && a.conn.archive != "":
		return 0, usagef("--follow is for runs on a server: what is archived goes on nowhere")
	case from == "" || from == "now":
		return 0, nil
	case from == "start":
		return 1, nil
	}
	if first, err = strconv.Atoi(from); err != nil || first < 1 {
		return 0, usagef("--from %s is no superstep: it is a number from 1 on, start or now", quoted(from))
	}
	return first, nil
}

// followThread follows a run that anybody started. What it waits for already is shown at once.
func (a looks) followThread(ctx context.Context, svc service, id string, first int) error {
	view, err := svc.Show(ctx, id)
	if err != nil {
		return err
	}
	if first > 0 {
		return a.followFrom(ctx, svc, thread.View{Thread: id}, false, first)
	}
	if !a.JSON() {
		a.showQuestions(view.Questions)
		a.showAttempts(view)
	}
	return a.follow(ctx, svc, view, false)
}

// showAttempts shows the tasks under way of which an attempt has failed.
func (a looks) showAttempts(view thread.View) {
	screen.Section(a.Screen, view.Attempts, func(t thread.AttemptView) screen.Row {
		next := "under way"
		if wait := t.RetryAt.Sub(a.Now()); wait > 0 {
			next = a.Moment(t.RetryAt) + ", in " + screen.Duration(wait)
		}
		return screen.Row{t.Node, t.Step, t.Attempt, next, t.Error}
	}, "RETRIES", "STEP", "ATTEMPT", "BEGINS", "FAILED BEFORE")
}

func (a looks) showThread(view thread.View) {
	a.Printf("%s  %s\n", screen.Clean(view.Thread), a.Status(string(view.Status)))
	a.threadFacts(view).Print("")
	a.showAttempts(view)
	a.showQuestions(view.Questions)
	a.showInbox(view)
	screen.Section(a.Screen, view.Effects, effectRow, "KEY", "EFFECT", "STATE", "ATTEMPTS", "RECEIPT", "EVIDENCE")
	a.showLeft(view.Cancel)
	if len(view.Output) > 0 {
		a.Printf("\noutput\n")
		a.Values(view.Output)
	}
	if next := nextOfView(view, answerable(view)); len(next) > 0 && next[0] != "show" {
		a.next(next...)
	}
}

// threadFacts are the lines of a thread that have something to say.
func (a looks) threadFacts(view thread.View) *screen.Table {
	t := a.Table()
	t.Fact("graph", view.Graph)
	t.Fact("durability", modeFact(view.Durability, view.Fused))
	t.Fact("step", fmt.Sprint(view.Step))
	at := "at"
	if view.Status == thread.StatusStopped || view.Status == thread.StatusPaused || view.Held {
		at = "next"
	}
	t.Fact(at, screen.List(view.Nodes))
	t.Fact("drained", view.Drained)
	if view.Paused != nil {
		t.Fact("paused", a.pauseFact(*view.Paused))
	}
	t.Fact("budget", budgetFact(view.Budget))
	t.Fact("cancel", cancelFact(view.Cancel))
	t.Fact("waits", a.waitNote(view.Cancel))
	t.Fact("error", view.Error)
	t.Fact("problem", view.Problem)
	if view.Held {
		t.Fact("held", "it stays open: retry it, give it new input, or cancel it")
	}
	t.Fact("started", a.MomentAgo(view.Started))
	t.Fact("closed", a.MomentAgo(view.Closed))
	t.Fact("expires", a.Moment(view.Expires))
	t.Fact("run", view.RunID)
	if view.Events > 0 {
		t.Fact("history", fmt.Sprintf("%d events, %s", view.Events, humanize.IBytes(uint64(max(view.HistoryBytes, 0)))))
	}
	return t
}

// budgetFact is what a thread has spent of what it may spend, "" without a budget.
func budgetFact(b *thread.BudgetView) string {
	if b == nil {
		return ""
	}
	var all []string
	fact := func(what string, spent, limit int64, shown func(int64) string) {
		switch {
		case limit > 0:
			all = append(all, fmt.Sprintf("%s %s / %s", what, shown(spent), shown(limit)))
		case spent > 0:
			all = append(all, what+" "+shown(spent))
		}
	}
	fact("tokens", b.Spent.Tokens, b.Limit.Tokens, humanize.Comma)
	fact("usd", b.Spent.MicroUSD, b.Limit.MicroUSD, dollars)
	fact("writes", b.Spent.Writes, b.Limit.Writes, humanize.Comma)
	fact("time", int64(b.Spent.Time), int64(b.Limit.Time), func(n int64) string { return screen.Duration(time.Duration(n)) })
	fact("supersteps", b.Spent.Supersteps, b.Limit.Supersteps, humanize.Comma)
	return strings.Join(all, ", ")
}

// modeFact says how progress is stored, "" when that is not known. Async and exit mode are fused anyway.
func modeFact(d superstep.Durability, fused bool) string {
	if fused && d == superstep.DurabilitySync {
		return string(d) + ", fused"
	}
	return string(d)
}

func (a *app) showQuestions(questions []thread.Question) {
	if slices.ContainsFunc(questions, func(q thread.Question) bool { return !q.Due.IsZero() }) {
		screen.Section(a.Screen, questions, func(q thread.Question) screen.Row {
			return screen.Row{q.ID, q.Node, screen.ValueText(q.Value), a.Moment(q.Due)}
		}, "QUESTION", "NODE", "ASKS", "UNTIL")
		return
	}
	screen.Section(a.Screen, questions, func(q thread.Question) screen.Row {
		return screen.Row{q.ID, q.Node, screen.ValueText(q.Value)}
	}, "QUESTION", "NODE", "ASKS")
}

// showInbox shows what a thread waits for that is no person, and what was sent to it: what came by signal and was not taken is
// told here, as whoever sent it had no reply.
func (a looks) showInbox(view thread.View) {
	screen.Section(a.Screen, view.Waits, func(w thread.WaitView) screen.Row {
		return screen.Row{w.Event, w.Node, a.Moment(w.Due)}
	}, "EVENT", "NODE", "UNTIL")
	screen.Section(a.Screen, view.Kept, func(k thread.KeptEventView) screen.Row {
		return screen.Row{k.Event, k.By, a.MomentAgo(k.At)}
	}, "KEPT EVENT", "BY", "SENT")
	screen.Section(a.Screen, view.Refused, func(r thread.RefusedView) screen.Row {
		return screen.Row{cmp.Or(r.Question, r.Event, "request"), r.By, a.MomentAgo(r.At), r.Reason}
	}, "NOT TAKEN", "BY", "SENT", "WHY")
}

func effectRow(e thread.EffectView) screen.Row {
	return screen.Row{e.Key, e.Effect, e.State, e.Attempts, screen.Cell(e.Receipt), e.Evidence}
}

func (a looks) effectsCommand() *cobra.Command {
	return a.build(command{
		name:  "effects",
		flags: a.archived,
		run: func(ctx context.Context, args []string) error {
			return call(ctx, a.app, func(svc service) (thread.EffectsView, error) {
				view, err := svc.Effects(ctx, thread.EffectsRequest{Thread: args[0]})
				view.Effects = listed(view.Effects)
				return view, err
			}, a.showEffects)
		},
	})
}

func (a looks) showEffects(view thread.EffectsView) {
	if len(view.Effects) == 0 {
		a.Printf("no effects\n")
	} else {
		screen.Rows(a.Screen, view.Effects, func(e thread.EffectView) screen.Row {
			return append(effectRow(e), e.Node, e.Step, a.Moment(e.Time), e.Run)
		}, "KEY", "EFFECT", "STATE", "ATTEMPTS", "RECEIPT", "EVIDENCE", "NODE", "STEP", "TIME", "RUN")
	}
	switch {
	case view.Gone == 1:
		a.Printf("an earlier run is gone: what it did is not listed\n")
	case view.Gone > 1:
		a.Printf("%d earlier runs are gone: what they did is not listed\n", view.Gone)
	}
}

// drawings are the values of graph --format.
var drawings = []string{superstep.DrawText, superstep.DrawMermaid, superstep.DrawDOT}

func (a looks) graphCommand() *cobra.Command {
	var format string
	return a.build(command{
		name:     "graph",
		complete: namesOf(a.graphs),
		flags: func(flags *pflag.FlagSet) {
			choiceVar(flags, &format, "format", superstep.DrawText, drawings, "`FORMAT`: "+screen.List(drawings))
		},
		run: func(ctx context.Context, args []string) error {
			spec, err := a.spec(ctx, args[0])
			if err != nil {
				return err
			}
			drawing, err := superstep.Draw(spec, format)
			if err != nil {
				return fmt.Errorf("graph %s cannot be drawn: %w", args[0], err)
			}
			a.Show(spec, func() {
				a.Printf("%s\n", strings.TrimRight(drawing, "\n"))
				if format == superstep.DrawText && (spec.Durability != "" || spec.Fused) {
					d := cmp.Or(superstep.Durability(spec.Durability), superstep.DurabilitySync)
					a.Printf("durability %s\n", modeFact(d, spec.Fused))
				}
			})
			return nil
		},
	})
}

// spec returns a graph's data from this program, else from a worker.
func (a looks) spec(ctx context.Context, name string) (*pregel.Spec, error) {
	if g, ok := a.graph(name); ok {
		return g.Adapter().Spec, nil
	}
	var spec *pregel.Spec
	err := a.withService(ctx, func(svc service) (err error) {
		spec, err = svc.GraphSpec(ctx, name)
		return err
	})
	return spec, err
}
