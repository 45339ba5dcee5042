package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/cli/screen"
	"superstep.dev/thread"
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
			flags.StringVar(&req.Reason, "reason", "", "why the run is cancelled")
			flags.StringVar(&req.By, "by", a.userName(), "who erases it")
			choiceVar(flags, &audit, "audit", auditErase, []string{auditErase, auditKeep}, "what becomes of its record: erase or keep")
			flags.StringVar(&req.Archives, "archive", "", "`DIR` of archives from which it is removed too (default: archives stay)")
			flags.StringVar(&auditDir, "audit-dir", ".", "`DIR` for --audit keep: one file a thread, as audit --export writes it")
		},
		run: func(ctx context.Context, args []string) error {
			req.Thread = args[0]
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
