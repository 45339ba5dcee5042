package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/job"
)

func (a *app) inboxCommand() *cobra.Command {
	var q superstep.InboxQuery
	cmd := a.build(command{
		use: "inbox", short: "List what waits for people", group: groupRuns,
		about: `The open questions of all threads, the most pressing first. The server's index has them, so no worker is asked; it is a
moment behind. ON SILENCE is what happens when nobody has answered by then.`,
		example: []string{"inbox", "inbox --approver ann --group finance", "inbox --graph refund --overdue -o json"},
		run: func(cmd *cobra.Command, _ []string) error {
			return a.inbox(cmd.Context(), q)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&q.Approver, "approver", "", "only what asks `NAME`")
	flags.StringVar(&q.Group, "group", "", "only what asks `GROUP`; with --approver, either")
	flags.StringVar(&q.Graph, "graph", "", "only threads of `GRAPH`")
	flags.BoolVar(&q.Overdue, "overdue", false, "only what should have been answered by now")
	flags.IntVar(&q.Limit, "limit", usualListed, fmt.Sprintf("of at most `N` threads, up to %d", mostListed))
	flags.StringVar(&q.Page, "page", "", "go on behind a page: its `NEXT`")
	return cmd
}

func (a *app) inbox(ctx context.Context, q superstep.InboxQuery) error {
	if q.Graph != "" {
		if err := checkGraphName(q.Graph); err != nil {
			return err
		}
	}
	for _, name := range []string{q.Approver, q.Group} {
		if len(name) > maxThreadID || strings.ContainsFunc(name, notPrintable) {
			return usagef("%s cannot be a name", quoted(name))
		}
	}
	if q.Limit < 1 || q.Limit > mostListed {
		return usagef("--limit %d is not between 1 and %d", q.Limit, mostListed)
	}
	return a.withService(ctx, func(svc service) error {
		page, err := svc.Inbox(ctx, q)
		if err != nil {
			return err
		}
		if a.json() {
			page.Questions = append([]superstep.InboxItem{}, page.Questions...) // [] when there are none
			return a.writeJSON(page)
		}
		return a.showInbox(page, q)
	})
}

func (a *app) showInbox(page superstep.InboxPage, q superstep.InboxQuery) error {
	if len(page.Questions) == 0 && page.Next == "" {
		a.printf("nothing waits\n")
		return nil
	}
	head := []string{"QUESTION", "THREAD", "ASKS", "RISK", "DUE", "ON SILENCE"}
	quorum := slices.ContainsFunc(page.Questions, func(i superstep.InboxItem) bool { return i.Need > 1 })
	if quorum {
		head = append(head, "VOTES")
	}
	t := newTable(head...)
	for _, i := range page.Questions {
		asks := i.Asks
		if i.Question == "" {
			asks = fmt.Sprintf("(%d more: %s)", i.Open, a.commandLine("show", i.Thread))
		}
		cells := []string{i.Question, i.Thread, shorten(asks, cellWidth), string(i.Risk), a.distance(i.Due), onSilence(i)}
		if quorum && i.Need > 1 {
			cells = append(cells, fmt.Sprintf("%d of %d", i.Votes, i.Need))
		}
		t.row(cells...)
	}
	if err := t.writeTo(a.stdout, ""); err != nil {
		return err
	}
	a.nextInInbox(page, q)
	return nil
}

// onSilence says what follows when nobody answers, "" when nothing ever does.
func onSilence(i superstep.InboxItem) string {
	if i.Due.IsZero() {
		return ""
	}
	return string(i.Silence)
}

// nextOfItem is the command that shows a question: one that a leader asks is of its job.
func nextOfItem(i superstep.InboxItem) []string {
	if i.Job != "" && i.Thread == job.WorkflowID(i.Job) {
		return []string{"job", "show", i.Job}
	}
	return []string{"question", i.Thread, i.Question}
}

// nextInInbox names the most pressing question, and the next page.
func (a *app) nextInInbox(page superstep.InboxPage, q superstep.InboxQuery) {
	if at := slices.IndexFunc(page.Questions, func(i superstep.InboxItem) bool { return i.Question != "" }); at >= 0 {
		a.next(nextOfItem(page.Questions[at]))
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
	a.printf("more      %s\n", a.commandLine(line...))
}

// distance shows how far t is from now; "" for never.
func (a *app) distance(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if left := t.Sub(a.now()); left > 0 {
		return "in " + shortDuration(left)
	}
	return a.ago(t)
}
