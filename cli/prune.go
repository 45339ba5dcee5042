package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/thread"
	"superstep.dev/thread/archive"
)

// everyPruned is after how many threads that were pruned people are told.
const everyPruned = 100

func (a control) pruneCommand() *cobra.Command {
	var (
		req   thread.PruneRequest
		older age = -1
		yes   bool
	)
	return a.build(command{
		name: "prune",
		flags: func(flags *pflag.FlagSet) {
			flags.Var(&older, "older-than", "what has ended so long ago: `AGE` as 30d or 12h")
			flags.StringVar(&req.Dir, "archive", "", "`DIR` of the archives, one file a thread")
			flags.StringVar(&req.Graph, "graph", "", "only threads of `GRAPH`, or jobs of that leader")
			flags.BoolVar(&yes, "yes", false, "archive and erase it; without, only say what would be")
		},
		run: func(ctx context.Context, _ []string) error {
			switch {
			case older < 0:
				return usagef("--older-than is missing: prune what has ended so long ago, as 30d")
			case yes && req.Dir == "":
				return usagef("--archive is missing: what is erased is archived in a directory first")
			}
			if err := checkArguments([]string{"[GRAPH]"}, []string{req.Graph}); err != nil {
				return err
			}
			req.Before, req.DryRun = a.Now().Add(-time.Duration(older)), !yes
			req.Done, req.Removed = a.prunedSoFar(), a.removedSoFar()
			return a.withService(ctx, func(svc service) error {
				report, err := svc.Prune(ctx, req)
				if err == nil || len(report.Threads)+len(report.Failed) > 0 { // what was pruned is told, whatever came then
					a.Show(report, func() { a.showPruning(report, older, req) })
				}
				return err
			})
		},
	})
}

// prunedSoFar tells people of long work.
func (a control) prunedSoFar() func(thread.Pruned) {
	n := 0
	return func(p thread.Pruned) {
		if p.Erasure == nil {
			return
		}
		if n++; n%everyPruned == 0 {
			fmt.Fprintf(a.stderr, "%s pruned\n", english.Plural(n, "thread", ""))
		}
	}
}

func (a control) showPruning(report thread.Pruning, older age, req thread.PruneRequest) {
	switch {
	case len(report.Threads)+len(report.Failed) == 0:
		a.Printf("nothing has ended before %s\n", a.Moment(report.Before))
	case report.DryRun:
		a.showDryRun(report, older, req)
	default:
		a.showPruned(report)
	}
}

func (a control) showDryRun(report thread.Pruning, older age, req thread.PruneRequest) {
	screen.Rows(a.Screen, report.Threads, func(p thread.Pruned) screen.Row {
		return screen.Row{p.Thread, p.Graph, p.Status, a.MomentAgo(p.Closed)}
	}, "THREAD", "GRAPH", "STATUS", "ENDED")
	a.Printf("%s would be archived and erased\n", english.Plural(len(report.Threads), "thread", ""))
	next := []string{"prune", "--older-than", older.String(), "--archive", cmp.Or(req.Dir, "archives"), "--yes"}
	if req.Graph != "" {
		next = append(next, "--graph", req.Graph)
	}
	a.next(next...)
}

func (a control) showPruned(report thread.Pruning) {
	screen.Rows(a.Screen, report.Threads, func(p thread.Pruned) screen.Row {
		return screen.Row{p.Thread, p.Status, a.Moment(p.Closed), humanize.IBytes(uint64(max(p.Bytes, 0))), p.Archive}
	}, "THREAD", "STATUS", "ENDED", "SIZE", "ARCHIVE")
	a.Printf("%s archived and erased; nothing is found of them any more\n", english.Plural(len(report.Threads), "thread", ""))
	screen.Section(a.Screen, report.Failed, func(p thread.Pruned) screen.Row { return screen.Row{p.Thread, p.Error} }, "NOT PRUNED", "WHY")
}

// age is a flag's time that may be so many days.
type age time.Duration

// Set implements pflag.Value.
func (g *age) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, is := strings.CutSuffix(text, "d"); is {
		var n int64
		n, err = strconv.ParseInt(days, 10, 32)
		d = time.Duration(n) * day
		if n > mostDays {
			return badValue("is more than " + strconv.Itoa(mostDays) + "d")
		}
	}
	if err != nil || d < 0 {
		return badValue("is no age, for instance 30d or 12h")
	}
	*g = age(d)
	return nil
}

const (
	day      = 24 * time.Hour
	mostDays = 100 * 365
)

// Type implements pflag.Value.
func (g *age) Type() string { return "age" }

func (g age) String() string {
	d := time.Duration(g)
	switch {
	case d < 0:
		return ""
	case d > 0 && d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

// archived gives a command that only looks the flag with which it looks at archived threads.
func (a *app) archived(flags *pflag.FlagSet) {
	flags.StringVar(&a.conn.archive, "archive", "", "look at what was pruned: the `FILE` of an archive, or their directory; no server is asked")
}

// withArchive calls do over the archive that the command line names.
func (a *app) withArchive(ctx context.Context, opts client.Options, do func(svc service) error) error {
	kept, err := archive.Open(a.conn.archive)
	if err != nil {
		return err
	}
	defer kept.Close()
	a.storage = kept.Storage()
	opts.ExternalStorage = a.storage.External()
	opts = superstep.Encoded(opts)
	c, err := kept.Client(opts)
	if err != nil {
		return err
	}
	defer c.Close()
	return a.over(ctx, c, opts, do)
}
