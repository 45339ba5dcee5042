package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/cli/screen"
	"superstep.dev/thread"
	"superstep.dev/thread/archive"
)

// The values of erase --audit.
const (
	auditErase = "erase"
	auditKeep  = "keep"
)

func (a control) eraseCommand() *cobra.Command {
	var (
		req      thread.EraseRequest
		yes      bool
		audit    string
		auditDir string
	)
	return a.build(command{
		name: "erase",
		flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&yes, "yes", false, "remove it; it cannot be undone")
			flags.BoolVar(&req.Cancel, "cancel", false, "cancel its run first, if one is open")
			flags.StringVar(&req.Reason, "reason", "", "`TEXT` of why the run is cancelled")
			flags.StringVar(&req.By, "by", "", "`NAME` of who erases it (default: your user name)")
			choiceVar(flags, &audit, "audit", auditErase, []string{auditErase, auditKeep}, "`WHAT` becomes of its record: erase or keep")
			flags.StringVar(&req.Archives, "archive", "", "`DIR` of archives from which it is removed too (default: archives stay)")
			flags.StringVar(&auditDir, "audit-dir", ".", "`DIR` for --audit keep: one file a thread, as audit --export writes it")
		},
		run: func(ctx context.Context, args []string) error {
			req.Thread, req.By = args[0], cmp.Or(req.By, a.userName())
			if !yes {
				return usagef("erase removes all that is stored of %s, and cannot be undone: say --yes", quoted(req.Thread))
			}
			if audit == auditKeep {
				req.KeepAudit = func(thread string, read func() (approval.Export, error)) error {
					return keepAudit(auditDir, thread, read)
				}
			}
			req.Removed = a.removedSoFar()
			return call(ctx, a.app, func(svc service) (thread.Erasure, error) {
				proof, err := svc.Erase(ctx, req)
				if err != nil && len(proof.Runs)+proof.Values > 0 {
					fmt.Fprintf(a.stderr, "removed so far: %s, %s\n", english.Plural(len(proof.Runs), "run", ""), english.Plural(proof.Values, "value", ""))
				}
				return proof, err
			}, a.showErasure)
		},
	})
}

// everyRemoved is after how many things that were removed people are told.
const everyRemoved = 1000

// removedSoFar tells people of long work.
func (a control) removedSoFar() func(thread.Removal) {
	n := 0
	return func(thread.Removal) {
		if n++; n%everyRemoved == 0 {
			fmt.Fprintf(a.stderr, "%s removed\n", english.Plural(n, "thing", ""))
		}
	}
}

func (a control) showErasure(proof thread.Erasure) {
	name := screen.Clean(proof.Thread)
	if len(proof.Runs)+proof.Values+len(proof.Archives) == 0 {
		a.Printf("nothing is there of %s: it was erased before, or never was\n", name)
		return
	}
	a.Printf("erased  %s  %s", name, english.Plural(len(proof.Runs), "run", ""))
	if proof.Storage != "" {
		a.Printf(", %s with %s", english.Plural(proof.Values, "stored value", ""), humanize.IBytes(uint64(max(proof.Bytes, 0))))
	}
	a.Printf("; nothing is found any more\n")
	screen.Rows(a.Screen, proof.Runs, func(r thread.Removal) screen.Row { return screen.Row{r.Thread, r.Name, r.Events, r.SHA256} },
		"THREAD", "RUN", "EVENTS", "SHA-256 OF ITS HISTORY")
	screen.Section(a.Screen, proof.Archives, func(r thread.Removal) screen.Row {
		return screen.Row{r.Name, humanize.IBytes(uint64(max(r.Bytes, 0))), r.SHA256}
	},
		"ARCHIVE REMOVED", "SIZE", "SHA-256")
	t := a.Table()
	t.Fact("values", proof.ValuesSHA256)
	t.Fact("audit kept", screen.List(proof.AuditKept))
	t.Print("")
}

// keepAudit writes a thread's audit into a directory. An audit that was written there before an interruption stays: only the same one may
// be there.
func keepAudit(dir, threadID string, read func() (approval.Export, error)) error {
	path := filepath.Join(dir, fileOf(threadID)+".audit.jsonl")
	kept, there, err := keptAudit(path)
	if err != nil {
		return err
	}
	x, err := read()
	switch {
	case err != nil && there:
		return nil // what it was read from is gone already
	case err != nil:
		return err
	case there && kept.Chain != x.Chain:
		return usagef("%s is there, and holds the audit of another thread of that name: move it, or name another --audit-dir", quoted(path))
	case there:
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return usagef("--audit-dir: %w", err)
	}
	return writeWhole(path, func(w io.Writer) error { return approval.WriteExport(w, x) })
}

// keptAudit reads an audit that was kept, if there is one.
func keptAudit(path string) (x approval.Export, there bool, err error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return x, false, nil
	}
	if err == nil {
		defer file.Close()
		x, err = approval.ReadExport(file)
	}
	if err != nil {
		return x, false, usagef("%s is there, and cannot be read as an audit: %w", quoted(path), err)
	}
	return x, true, nil
}

// fileOf is the name of a thread's files.
func fileOf(threadID string) string { return url.PathEscape(threadID) }

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
