package taskrun

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// TestParametersInTheQuestionAboutAnUndo: the secrets that an effect declares are hidden, all parameters where nobody can
// say what is a secret, and nothing of an effect that declares none.
func TestParametersInTheQuestionAboutAnUndo(t *testing.T) {
	const params = `{"order":"o-7","card":"4929"}`
	card := func(pregel.Value) (approval.Action, bool, error) {
		return approval.Action{Summary: "Refund", Secrets: []string{"/card"}}, false, nil
	}
	large := `{"order":"` + strings.Repeat("o", maxAsked) + `"}`
	for _, c := range []struct {
		name     string
		declared string // the effect's name in the graph of now
		approval func(pregel.Value) (approval.Action, bool, error)
		params   string
		want     string
	}{
		{"secrets", "payments.refund", card, params, `{"order":"o-7","card":"***"}`},
		{"no approval", "payments.refund", nil, params, params},
		{"they do not fit any more", "payments.refund", func(pregel.Value) (approval.Action, bool, error) {
			return approval.Action{}, false, errors.New("card is unknown")
		}, params, `"***"`},
		{"a panic", "payments.refund", func(pregel.Value) (approval.Action, bool, error) { panic("no card") }, params, `"***"`},
		{"the effect is gone", "payments.payout", card, params, `"***"`},
		{"not on record", "payments.refund", card, "", `null`},
		{"too large", "payments.refund", nil, large, `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := (&bank{}).effect(ledger.TargetKeyed) // it has no Compensate
			e.Name, e.Approval = c.declared, c.approval
			of := Compensation{Node: "pay", Effect: ledger.Entry{Key: "k-1", Name: "payments.refund", Kind: ledger.KindEffect,
				State: ledger.StateCommitted, Params: pregel.Value(c.params), Result: pregel.Value(`"rf-1"`)}}
			if c.params == "" {
				of.Effect.Params = nil
			}
			undone, err := Compensate(t.Context(), oneNode(nil, e), of, CompensateEnv{Thread: "r-7", Journal: mustJournal(t, nil)})
			if err != nil || undone.State != UndoOpen {
				t.Fatalf("%+v, %v", undone, err)
			}
			stored, err := json.Marshal(undone) // as the activity's result
			if err == nil {
				undone = Undone{}
				err = json.Unmarshal(stored, &undone)
			}
			var asked Reconcile
			if err == nil {
				err = json.Unmarshal(UndoQuestion("r-7", of, undone, 0).Question.Value, &asked)
			}
			if err != nil {
				t.Fatal(err)
			}
			if canonicalJSON(t, asked.Params) != canonicalJSON(t, pregel.Value(c.want)) {
				t.Errorf("shown %s, want %s", asked.Params, c.want)
			}
		})
	}
}

// canonicalJSON is a value with the names of its objects in order.
func canonicalJSON(t *testing.T, v pregel.Value) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(v, &value); err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(value) // it was JSON
	return string(out)
}
