package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	verify bool
	export string
}

func (a *app) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := a.build(command{
		use: "audit THREAD", short: "Show the record of a thread's approvals", group: groupLook, args: []string{"THREAD"},
		about: `Who was asked, who looked, what was said and refused and why, and what was done. It is read from the runs' histories;
each entry holds the hash of the one before it, and a record that was changed since is an error (exit 1). --export
writes the entries as JSON, one a line.`,
		example: []string{"audit r-7", "audit r-7 --verify", "audit r-7 --export audit.jsonl"},
		run: func(cmd *cobra.Command, args []string) error {
			return a.audit(cmd.Context(), args[0], f)
		},
	})
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.verify, "verify", false, "only say whether the record is as it was written")
	cmd.Flags().StringVar(&f.export, "export", "", "write the entries to `FILE`, or - for standard output")
	return cmd
}

// auditView is a thread's audit for programs.
type auditView struct {
	Entries []approval.Entry `json:"entries"`
	Chain   approval.Chain   `json:"chain"`
}

func (a *app) audit(ctx context.Context, thread string, f auditFlags) error {
	if f.verify && f.export != "" {
		return usagef("--verify and --export exclude each other: what is exported is verified")
	}
	if err := checkThread(thread); err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		entries, chain, err := svc.Audit(ctx, thread)
		var broken *approval.BrokenError
		if err != nil && (f.verify || f.export != "" || !errors.As(err, &broken)) {
			return err
		}
		view := auditView{Entries: append([]approval.Entry{}, entries...), Chain: chain}
		if showErr := a.showAudit(view, f); showErr != nil {
			return showErr
		}
		return err // the entries of a broken record are shown, and do not count
	})
}

func (a *app) showAudit(v auditView, f auditFlags) error {
	switch {
	case f.export != "":
		return a.exportAudit(v, f.export)
	case f.verify && a.json():
		return a.writeJSON(v.Chain)
	case f.verify:
		a.printf("verified  %s%s\n", entryCount(len(v.Entries)), headText(v.Chain))
		return nil
	case a.json():
		return a.writeJSON(v)
	case len(v.Entries) == 0:
		a.printf("no approvals\n")
		return nil
	}
	t := newTable("NO", "TIME", "WHAT", "QUESTION", "WHO", "NOTE")
	for _, e := range v.Entries {
		t.row(fmt.Sprint(e.Seq), a.moment(e.At), whatHappened(e), e.Question, e.Who, shorten(clean(entryNote(e)), cellWidth))
	}
	if err := t.writeTo(a.stdout, ""); err != nil {
		return err
	}
	if first := v.Entries[0].Seq; first > 1 {
		a.printf("what is before entry %d is gone with earlier runs\n", first)
	}
	return nil
}

func entryCount(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func headText(c approval.Chain) string {
	if c.Head == "" {
		return ""
	}
	return ", the last " + c.Head
}

// whatHappened is an entry's kind, and what was said.
func whatHappened(e approval.Entry) string {
	if e.Verdict == "" || string(e.Verdict) == string(e.Kind) {
		return string(e.Kind)
	}
	return string(e.Kind) + " " + string(e.Verdict)
}

// entryNote is what else a person wants to know of an entry.
func entryNote(e approval.Entry) string {
	var parts []string
	if e.Count > 1 {
		parts = append(parts, fmt.Sprintf("%d times", e.Count))
	}
	if e.Code != "" {
		parts = append(parts, string(e.Code))
	}
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	return strings.Join(parts, ": ")
}

// exportAudit writes the entries as JSON lines, to a file that is there only when it is whole.
func (a *app) exportAudit(v auditView, path string) error {
	if path == "-" {
		return approval.WriteEntries(a.stdout, v.Entries)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return &usageError{message: fmt.Sprintf("--export: %v", err), err: err}
	}
	err = errors.Join(approval.WriteEntries(file, v.Entries), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name()) // what is left of the attempt; the error to report is the first one
		return fmt.Errorf("--export %s: %w", quoted(path), err)
	}
	if !a.json() {
		a.printf("exported  %s to %s%s\n", entryCount(len(v.Entries)), clean(path), headText(v.Chain))
		return nil
	}
	return a.writeJSON(v.Chain)
}

// viewed notes in the audit that the user has looked at an approval.
func (a *app) viewed(ctx context.Context, svc service, v superstep.QuestionView) error {
	if v.Approval == nil || v.Given != nil {
		return nil
	}
	return svc.Viewed(ctx, v.Thread, v.ID, a.userName())
}
