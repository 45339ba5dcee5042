package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"superstep.dev"
)

// cellWidth bounds a value in a table, in characters. The whole value is in -o json.
const cellWidth = 100

func (a *app) showCommand() *cobra.Command {
	return a.build(command{
		use: "show THREAD", short: "Show where a thread stands", group: groupLook, args: []string{"THREAD"},
		about:   `Its status, what it runs or waits for, its open questions, its writes to the outside and the size of its history.`,
		example: []string{"show r-7", "show r-7 -o json"},
		run: func(cmd *cobra.Command, args []string) error {
			return onThread(a, cmd.Context(), args[0], service.Show, a.showThread)
		},
	})
}

// onThread checks a thread's id, makes one call about it and shows what came back.
func onThread[View any](a *app, ctx context.Context, thread string,
	call func(service, context.Context, string) (View, error), show func(View) error) error {
	if err := checkThread(thread); err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		view, err := call(svc, ctx, thread)
		if err != nil {
			return err
		}
		if a.json() {
			return a.writeJSON(view)
		}
		return show(view)
	})
}

func (a *app) showThread(view superstep.ThreadView) error {
	a.printf("%s  %s\n", clean(view.Thread), a.status(string(view.Status)))
	if err := a.threadFacts(view).writeTo(a.stdout, ""); err != nil {
		return err
	}
	if err := a.showQuestions(view.Questions); err != nil {
		return err
	}
	if err := a.showWaits(view); err != nil {
		return err
	}
	if err := a.showRefused(view.Refused); err != nil {
		return err
	}
	if err := a.showEffects(view.Effects); err != nil {
		return err
	}
	if err := a.showLeft(view.Cancel); err != nil {
		return err
	}
	if len(view.Output) > 0 {
		a.printf("\noutput\n")
		a.showValues(view.Output)
	}
	if send := sendNext(view); send != nil {
		a.next(send)
		return nil
	}
	a.nextAfterLook(view.Thread, view.Status, answerable(view))
	return nil
}

// threadFacts are the lines of a thread that have something to say.
func (a *app) threadFacts(view superstep.ThreadView) *table {
	t := newTable()
	fact := func(name, value string) {
		if value != "" {
			t.row(name, value)
		}
	}
	fact("graph", view.Graph)
	fact("durability", modeFact(view.Durability, view.Fused))
	fact("step", fmt.Sprint(view.Step))
	if view.Status == superstep.StatusStopped || view.Status == superstep.StatusPaused || view.Held {
		fact("next", list(view.Nodes))
	} else {
		fact("at", list(view.Nodes))
	}
	fact("drained", view.Drained)
	if view.Paused != nil {
		fact("paused", a.pauseFact(*view.Paused))
	}
	fact("cancel", cancelFact(view.Cancel))
	fact("waits", a.waitNote(view.Cancel))
	fact("error", view.Error)
	fact("problem", view.Problem)
	fact("held", heldFact(view))
	if !view.Started.IsZero() {
		fact("started", a.moment(view.Started)+", "+a.ago(view.Started))
	}
	if !view.Closed.IsZero() {
		fact("closed", a.moment(view.Closed)+", "+a.ago(view.Closed))
	}
	if !view.Expires.IsZero() {
		fact("expires", a.moment(view.Expires))
	}
	fact("run", view.RunID)
	if view.Events > 0 {
		fact("history", fmt.Sprintf("%d events, %s", view.Events, humanize.IBytes(uint64(max(view.HistoryBytes, 0)))))
	}
	return t
}

// heldFact says what becomes of a run that failed and is open.
func heldFact(view superstep.ThreadView) string {
	if !view.Held {
		return ""
	}
	return "it stays open: retry it, give it new input, or cancel it"
}

// modeFact says how progress is stored, "" when that is not known. Async and exit mode are fused anyway.
func modeFact(d superstep.Durability, fused bool) string {
	if fused && d == superstep.DurabilitySync {
		return string(d) + ", fused"
	}
	return string(d)
}

func (a *app) showQuestions(questions []superstep.Question) error {
	if len(questions) == 0 {
		return nil
	}
	a.printf("\n")
	t := newTable("QUESTION", "NODE", "ASKS")
	for _, q := range questions {
		t.row(q.ID, q.Node, valueText(q.Value))
	}
	return t.writeTo(a.stdout, "")
}

func (a *app) showEffects(effects []superstep.EffectView) error {
	if len(effects) == 0 {
		return nil
	}
	a.printf("\n")
	t := a.statusTable("KEY", "EFFECT", "STATE", "ATTEMPTS", "RECEIPT", "EVIDENCE")
	for _, e := range effects {
		t.row(e.Key, e.Effect, e.State, fmt.Sprint(e.Attempts), cell(e.Receipt), e.Evidence)
	}
	return t.writeTo(a.stdout, "")
}

// showValues shows channels and their values, by name.
func (a *app) showValues(values map[string]json.RawMessage) {
	t := newTable()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t.row(name, cell(values[name]))
	}
	t.writeTo(a.stdout, "  ") // a failed write is kept by stdout
}

// cell shows a value in a table: exactly, as JSON, but not at any length.
func cell(v json.RawMessage) string { return shorten(clean(compact(v)), cellWidth) }
