package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
)

// The bounds of --limit.
const (
	usualListed = 50
	mostListed  = 1000
)

// statuses are the values of --status.
var statuses = []superstep.Status{
	superstep.StatusRunning, superstep.StatusWaiting, superstep.StatusWaitingEvent, superstep.StatusPaused, superstep.StatusStopped, superstep.StatusFinished,
	superstep.StatusFailed, superstep.StatusTimedOut, superstep.StatusOutOfBudget, superstep.StatusCancelled,
	superstep.StatusTerminated,
}

func (a *app) listCommand() *cobra.Command {
	var (
		q      superstep.ListQuery
		status string
	)
	cmd := a.build(command{
		use: "list", short: "List threads", group: groupLook,
		about:   `The threads known to the server, the latest first.`,
		example: []string{"list", "list --graph refund --status waiting", "list --status failed -o json | jq -r '.[].thread'"},
		run: func(cmd *cobra.Command, _ []string) error {
			q.Status = superstep.Status(status)
			return a.listThreads(cmd, q)
		},
	})
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&q.Graph, "graph", "", "only threads of `GRAPH`")
	cmd.Flags().StringVar(&status, "status", "", "only threads whose `STATUS` is "+statusNames(" or "))
	choices(cmd, "status", statuses...)
	cmd.Flags().IntVar(&q.Limit, "limit", usualListed, fmt.Sprintf("at most `N` threads, up to %d", mostListed))
	return cmd
}

func (a *app) listThreads(cmd *cobra.Command, q superstep.ListQuery) error {
	if q.Graph != "" {
		if err := checkGraphName(q.Graph); err != nil {
			return err
		}
	}
	if q.Status != "" && !slices.Contains(statuses, q.Status) {
		return usagef("--status %s is unknown; it is %s", quoted(string(q.Status)), statusNames(" or "))
	}
	if q.Limit < 1 || q.Limit > mostListed {
		return usagef("--limit %d is not between 1 and %d", q.Limit, mostListed)
	}
	return a.withService(cmd.Context(), func(svc service) error {
		views, err := svc.List(cmd.Context(), q)
		if err != nil {
			return err
		}
		if a.json() {
			return a.writeJSON(append([]superstep.ThreadView{}, views...)) // [] when there are none
		}
		return a.showList(views, q)
	})
}

func (a *app) showList(views []superstep.ThreadView, q superstep.ListQuery) error {
	if len(views) == 0 {
		a.printf("no threads\n")
		return nil
	}
	t := a.statusTable("THREAD", "GRAPH", "STATUS", "AT", "STARTED", "NOTE")
	for _, v := range views {
		t.row(v.Thread, v.Graph, string(v.Status), list(v.Nodes), a.ago(v.Started), note(v))
	}
	if err := t.writeTo(a.stdout, ""); err != nil {
		return err
	}
	if len(views) == q.Limit {
		a.printf("%d shown; there may be more: --limit, --graph, --status\n", q.Limit)
	}
	waits := slices.IndexFunc(views, func(v superstep.ThreadView) bool { return v.Status == superstep.StatusWaiting })
	if waits >= 0 {
		a.next([]string{"show", views[waits].Thread})
	}
	return nil
}

// note is what a person should know of a thread at first sight.
func note(v superstep.ThreadView) string {
	const width = 60
	text := first(v.Problem, v.Error)
	if v.Paused != nil {
		text = "paused " + pauseNote(*v.Paused)
	}
	if text == "" && len(v.Questions) > 0 {
		text = valueText(v.Questions[0].Value)
	}
	return shorten(clean(text), width)
}

func statusNames(last string) string {
	names := make([]string, len(statuses))
	for i, s := range statuses {
		names[i] = string(s)
	}
	end := len(names) - 1
	return strings.Join(names[:end], ", ") + last + names[end]
}
