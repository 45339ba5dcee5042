package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/cli/screen"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	head                 bool
	export, verify, keys string
	from                 int
}

func (a looks) auditCommand() *cobra.Command {
	var f auditFlags
	return a.build(command{
		name: "audit",
		flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&f.head, "head", false, "only say that the record is as it was written, and where it ends")
			flags.StringVar(&f.export, "export", "", "write the entries to `FILE`, or - for standard output")
			flags.StringVar(&f.verify, "verify", "", "prove what was exported to `FILE`, or - for standard input")
			flags.StringVar(&f.keys, "public-keys", "", "the workers' public keys for --verify: PEM `FILES` or directories, separated as in PATH ("+token.EnvAuditKeys+")")
			a.archived(flags)
			flags.IntVar(&f.from, "from", 1, "`NUMBER` of the first entry for --verify, when runs before were gone already")
		},
		run: func(ctx context.Context, args []string) error {
			if err := f.check(args[0]); err != nil {
				return err
			}
			if f.verify != "" {
				return a.verifyExport(f)
			}
			return a.withService(ctx, func(svc service) error { return a.audit(ctx, svc, args[0], f) })
		},
	})
}

// auditView is a thread's audit for programs.
type auditView struct {
	Entries []approval.Entry `json:"entries"`
	Chain   approval.Chain   `json:"chain"`
}

func (f *auditFlags) check(thread string) error {
	switch {
	case howMany(f.head, f.export != "", f.verify != "") > 1:
		return usagef("--head, --export and --verify exclude each other: what is exported is verified")
	case f.verify != "" && thread != "":
		return usagef("--verify proves a file, without a server: leave THREAD out")
	case f.verify == "" && (f.keys != "" || f.from != 1):
		return usagef("--public-keys and --from go with --verify")
	case f.from < 1:
		return usagef("--from %d is no entry: they count from 1", f.from)
	case f.verify == "" && thread == "":
		return usagef("THREAD is missing, or --verify FILE")
	}
	return nil
}

func (a looks) audit(ctx context.Context, svc service, thread string, f auditFlags) error {
	if f.export != "" {
		x, err := svc.AuditExport(ctx, thread)
		if err != nil {
			return err
		}
		return a.exportAudit(x, f.export)
	}
	entries, chain, err := svc.Audit(ctx, thread)
	var broken *approval.BrokenError
	switch {
	case err != nil && (f.head || !errors.As(err, &broken)):
	case f.head:
		a.Show(chain, func() {
			a.Printf("verified  %s%s\n", english.Plural(len(entries), "entry", "entries"), headText(chain))
		})
	default: // the entries of a broken record are shown, and do not count
		a.Show(auditView{Entries: listed(entries), Chain: chain}, func() { a.showAudit(entries) })
	}
	return err
}

func (a looks) showAudit(entries []approval.Entry) {
	if len(entries) == 0 {
		a.Printf("nothing was done to it from outside\n")
		return
	}
	screen.Rows(a.Screen, entries, func(e approval.Entry) screen.Row {
		return screen.Row{e.Seq, a.Moment(e.At), whatHappened(e), cmp.Or(e.Question, e.Effect, e.Event), whoDid(e), screen.Brief(entryNote(e))}
	}, "NO", "TIME", "WHAT", "ABOUT", "WHO", "NOTE")
	if first := entries[0].Seq; first > 1 {
		a.Printf("what is before entry %d is gone with earlier runs\n", first)
	}
}

func headText(c approval.Chain) string {
	if c.Head == "" {
		return ""
	}
	return ", the last " + c.Head
}

// whatHappened is an entry's kind, and what was said or became of it.
func whatHappened(e approval.Entry) string {
	what := cmp.Or(string(e.Verdict), e.Mode, e.State, string(e.Op))
	if what == "" || what == string(e.Kind) {
		return string(e.Kind)
	}
	return string(e.Kind) + " " + what
}

// whoDid is the person who is proven to have done it, or with a ~ the name that somebody gave.
func whoDid(e approval.Entry) string {
	if e.Who == "" && e.Claimed != "" {
		return "~" + e.Claimed
	}
	return e.Who
}

// entryNote is what else a person wants to know of an entry.
func entryNote(e approval.Entry) string {
	times, from := "", ""
	if e.Count > 1 {
		times = fmt.Sprintf("%d times", e.Count)
	}
	if e.Checkpoint != "" {
		from = strings.TrimSpace(e.From + " " + e.Checkpoint)
	}
	parts := []string{times, string(e.Code), from, e.Node, e.Reason}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// exportAudit writes an audit, to a file that is there only when it is whole.
func (a looks) exportAudit(x approval.Export, path string) error {
	if path == "-" {
		return approval.WriteExport(a.Screen, x)
	}
	if err := writeWhole(path, func(w io.Writer) error { return approval.WriteExport(w, x) }); err != nil {
		if cannot := (*fs.PathError)(nil); errors.As(err, &cannot) && cannot.Op == "open" {
			return usagef("--export: %w", err)
		}
		return fmt.Errorf("--export %s: %w", quoted(path), err)
	}
	a.Show(exportView{Chain: x.Chain, Signed: x.Signed != ""}, func() {
		a.Printf("exported  %s to %s%s\n", english.Plural(len(x.Entries), "entry", "entries"), screen.Clean(path), headText(x.Chain))
		if x.Signed == "" {
			a.Printf("unsigned  no worker with an audit key answered: nobody can prove this file (worker --audit-key)\n")
			return
		}
		a.next("audit", "--verify", path, "--public-keys", "worker.pem")
	})
	return nil
}

// exportView is what programs are told of an export.
type exportView struct {
	approval.Chain
	Signed bool `json:"signed"`
}

// verifiedView is what programs are told of a proven export.
type verifiedView struct {
	approval.Chain
	Thread string    `json:"thread"`
	From   int       `json:"from"`
	At     time.Time `json:"signed_at"`
	KeyID  string    `json:"key_id"`
	Worker string    `json:"worker"`
}

// verifyExport proves an exported audit, without a server.
func (a looks) verifyExport(f auditFlags) error {
	keys, err := token.AuditKeys(f.keys)
	if err != nil {
		return usagef("--verify: %w", err)
	}
	x, err := a.readExport(f.verify)
	if err != nil {
		return usagef("--verify %s: %w", quoted(f.verify), err)
	}
	head, err := x.Verify(keys, f.from)
	if err != nil {
		return fmt.Errorf("--verify %s: %w", quoted(f.verify), err)
	}
	view := verifiedView{Chain: head.Chain, Thread: head.Thread, From: f.from, At: head.At, KeyID: head.KeyID, Worker: head.Worker}
	a.Show(view, func() {
		a.Printf("verified  %s of %s%s\nsigned    by %s with the key %s at %s\n", english.Plural(len(x.Entries), "entry", "entries"), screen.Clean(head.Thread),
			headText(head.Chain), screen.Clean(head.Worker), screen.Clean(head.KeyID), a.Moment(head.At))
	})
	return nil
}

func (a looks) readExport(path string) (approval.Export, error) {
	if path == "-" {
		return approval.ReadExport(a.stdin)
	}
	file, err := os.Open(path)
	if err != nil {
		return approval.Export{}, err
	}
	defer file.Close()
	return approval.ReadExport(file)
}
