package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// The bounds of --limit.
const (
	usualListed = 50
	mostListed  = 1000
)

// statuses are the values of --status.
var statuses = []thread.Status{
	thread.StatusRunning, thread.StatusWaiting, thread.StatusWaitingEvent, thread.StatusPaused, thread.StatusStopped, thread.StatusFinished,
	thread.StatusFailed, thread.StatusTimedOut, thread.StatusOutOfBudget, thread.StatusCancelled,
	thread.StatusTerminated,
}

func (a looks) listCommand() *cobra.Command {
	var q thread.ListQuery
	return a.build(command{
		name: "list",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&q.Graph, "graph", "", "only threads of `GRAPH`")
			choiceVar(flags, &q.Status, "status", "", statuses, "only threads whose `STATUS` is "+screen.OneOf(statuses))
			flags.IntVar(&q.Limit, "limit", usualListed, fmt.Sprintf("at most `N` threads, up to %d", mostListed))
			a.archived(flags)
		},
		run: func(ctx context.Context, _ []string) error {
			if err := cmp.Or(checkArguments([]string{"[GRAPH]"}, []string{q.Graph}), checkBetween("--limit", q.Limit, 1, mostListed)); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) ([]thread.View, error) {
				views, err := svc.List(ctx, q)
				return listed(views), err
			}, func(views []thread.View) { a.showList(views, q) })
		},
	})
}

func (a looks) showList(views []thread.View, q thread.ListQuery) {
	if len(views) == 0 {
		a.Printf("no threads\n")
		return
	}
	screen.Rows(a.Screen, views, func(v thread.View) screen.Row {
		return screen.Row{v.Thread, v.Graph, v.Status, screen.List(v.Nodes), a.Ago(v.Started), note(v)}
	}, "THREAD", "GRAPH", "STATUS", "AT", "STARTED", "NOTE")
	if len(views) == q.Limit {
		a.Printf("%d shown; there may be more: --limit, --graph, --status\n", q.Limit)
	}
	waits := slices.IndexFunc(views, func(v thread.View) bool { return v.Status == thread.StatusWaiting })
	if waits >= 0 {
		a.next("show", views[waits].Thread)
	}
}

// note is what a person should know of a thread at first sight.
func note(v thread.View) string {
	const width = 60
	text := cmp.Or(v.Problem, v.Error)
	if v.Paused != nil {
		text = "paused " + strings.TrimPrefix(byText(v.Paused.By, v.Paused.Reason), ", ")
	}
	if text == "" && len(v.Questions) > 0 {
		text = screen.ValueText(v.Questions[0].Value)
	}
	return screen.Shorten(screen.Clean(text), width)
}

func (a answers) inboxCommand() *cobra.Command {
	var q thread.InboxQuery
	return a.build(command{
		name: "inbox",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&q.Approver, "approver", "", "only what asks `NAME`")
			flags.StringVar(&q.Group, "group", "", "only what asks `GROUP`; with --approver, either")
			flags.StringVar(&q.Graph, "graph", "", "only threads of `GRAPH`")
			flags.BoolVar(&q.Overdue, "overdue", false, "only what should have been answered by now")
			flags.IntVar(&q.Limit, "limit", usualListed, fmt.Sprintf("of at most `N` threads, up to %d", mostListed))
			flags.StringVar(&q.Page, "page", "", "go on behind a page: its `NEXT`")
		},
		run: func(ctx context.Context, _ []string) error {
			if err := cmp.Or(checkArguments([]string{"[GRAPH]"}, []string{q.Graph}), checkPerson(q.Approver), checkPerson(q.Group),
				checkBetween("--limit", q.Limit, 1, mostListed)); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) (thread.InboxPage, error) {
				page, err := svc.Inbox(ctx, q)
				page.Questions = listed(page.Questions)
				return page, err
			}, func(page thread.InboxPage) { a.showInbox(page, q) })
		},
	})
}

func (a answers) showInbox(page thread.InboxPage, q thread.InboxQuery) {
	if len(page.Questions) == 0 && page.Next == "" {
		a.Printf("nothing waits\n")
		return
	}
	head := []string{"QUESTION", "THREAD", "ASKS", "RISK", "DUE", "ON SILENCE"}
	quorum := slices.ContainsFunc(page.Questions, func(i thread.InboxItem) bool { return i.Need > 1 })
	if quorum {
		head = append(head, "VOTES")
	}
	t := a.Table(head...)
	for _, i := range page.Questions {
		asks, silence := i.Asks, i.Silence
		if i.Question == "" {
			asks = fmt.Sprintf("(%d more: %s)", i.Open, a.commandLine("show", i.Thread))
		}
		if i.Due.IsZero() {
			silence = "" // nothing ever follows
		}
		cells := []any{i.Question, i.Thread, screen.Shorten(asks, screen.CellWidth), i.Risk, a.Distance(i.Due), silence}
		if quorum && i.Need > 1 {
			cells = append(cells, fmt.Sprintf("%d of %d", i.Votes, i.Need))
		}
		t.Row(cells...)
	}
	t.Print("")
	a.nextInInbox(page, q)
}

// nextInInbox names the most pressing question, one of a leader by its job, and the next page.
func (a answers) nextInInbox(page thread.InboxPage, q thread.InboxQuery) {
	if at := slices.IndexFunc(page.Questions, func(i thread.InboxItem) bool { return i.Question != "" }); at >= 0 {
		if i := page.Questions[at]; i.Job != "" && i.Thread == job.WorkflowID(i.Job) {
			a.next("job", "show", i.Job)
		} else {
			a.next("question", i.Thread, i.Question)
		}
	}
	if page.Next == "" {
		return
	}
	line := []string{"inbox", "--limit", fmt.Sprint(q.Limit), "--page", page.Next}
	for _, flag := range [][2]string{{"--approver", q.Approver}, {"--group", q.Group}, {"--graph", q.Graph}} {
		if flag[1] != "" {
			line = append(line, flag[:]...)
		}
	}
	if q.Overdue {
		line = append(line, "--overdue")
	}
	a.Printf("more      %s\n", a.commandLine(line...))
}
