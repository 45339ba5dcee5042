package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// doubtful runs an attempt that has to ask a person, and returns its question.
func doubtful(t *testing.T, g *graphadapter.Graph, journal Journal, answers ...pregel.Answer) pregel.Question {
	t.Helper()
	out, err := withAnswers(t, g, journal, answers...)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Questions) != 1 {
		t.Fatalf("%d questions, want 1", len(out.Questions))
	}
	return out.Questions[0]
}

func withAnswers(t *testing.T, g *graphadapter.Graph, journal Journal, answers ...pregel.Answer) (pregel.Outcome, error) {
	t.Helper()
	task := payTask()
	task.Answers = answers
	return RunAttempt(t.Context(), g, task, Env{Thread: "r-7", Suspect: true, Journal: journal})
}

func answerTo(q pregel.Question, value string) pregel.Answer {
	return pregel.Answer{QuestionID: q.ID, Value: pregel.Value(value), By: "ann"}
}

func TestPersonDecides(t *testing.T) {
	for _, c := range []struct {
		name, answer, receipt string
		calls                 int
		evidence              string
	}{
		{"done with a receipt", `{"action":"done","receipt":"rf-1"}`, "rf-1", 0, "done, says ann"},
		{"done without one", `{"action":"done"}`, "", 0, "done, says ann"},
		{"repeat", `{"action":"repeat"}`, "rf-", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bank{}
			var receipt string
			g := oneNode(payOnce(&receipt), b.effect(ledger.TargetNone))
			journal := mustJournal(t, nil)
			q := doubtful(t, g, journal)
			if e := onlyEntry(t, journal); e.State != ledger.StateUnknown || e.Evidence != "the effect has no Lookup" || b.calls != 0 {
				t.Fatalf("%d calls, ledger %+v", b.calls, e)
			}
			checkQuestion(t, q, onlyEntry(t, journal))
			out, err := withAnswers(t, g, journal, answerTo(q, c.answer))
			if err != nil || len(out.Questions) > 0 {
				t.Fatalf("%v, %d questions", err, len(out.Questions))
			}
			e := onlyEntry(t, journal)
			if !strings.HasPrefix(receipt, c.receipt) || b.calls != c.calls || e.Evidence != c.evidence || e.Rulings != 1 {
				t.Errorf("receipt %q, %d calls, ledger %+v", receipt, b.calls, e)
			}
		})
	}
}

func checkQuestion(t *testing.T, q pregel.Question, e ledger.Entry) {
	t.Helper()
	var asked Reconcile
	if err := json.Unmarshal(q.Value, &asked); err != nil {
		t.Fatal(err)
	}
	if asked.Kind != "reconcile" || asked.Effect != "payments.refund" || asked.Key != e.Key ||
		string(asked.Params) != `{"order":"o-7","amount":250}` || !strings.Contains(asked.Ask, "payments.refund") {
		t.Errorf("question %s", q.Value)
	}
	for answer, fits := range map[string]bool{
		`{"action":"done","receipt":{"any":1}}`: true, `{"action":"fail"}`: true,
		`{"action":"again"}`: false, `{}`: false, `true`: false, `{"action":"done","note":1}`: false,
	} {
		if err := graphadapter.CheckAnswer(q, pregel.Value(answer)); fits != (err == nil) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

func TestPersonStopsIt(t *testing.T) {
	b := &bank{}
	var receipt string
	g := oneNode(payOnce(&receipt), b.effect(ledger.TargetNone))
	journal := mustJournal(t, nil)
	q := doubtful(t, g, journal)
	fail := answerTo(q, `{"action":"fail"}`)
	_, err := withAnswers(t, g, journal, fail)
	if !graphadapter.IsPermanent(err) || !strings.Contains(err.Error(), "ann decided to stop") || b.calls != 0 {
		t.Errorf("%d calls, error %v", b.calls, err)
	}
	// The failed run is retried: the old answer does not answer the new question.
	again := doubtful(t, g, journal, fail)
	if again.ID == q.ID {
		t.Error("the same question is asked again, and has its answer already")
	}
}

// TestRepeatIsGoodForOneCall: the person said "repeat", the call was made, and the worker died with it. The old answer
// is no leave to call a second time.
func TestRepeatIsGoodForOneCall(t *testing.T) {
	b := &bank{}
	var receipt string
	journal := mustJournal(t, nil)
	effect := b.effect(ledger.TargetNone)
	q := doubtful(t, oneNode(payOnce(&receipt), effect), journal)
	repeat := answerTo(q, `{"action":"repeat"}`)
	p := &process{dieAt: 1}
	if _, err := withAnswers(t, oneNode(payOnce(&receipt), mortal(effect, p)), journal, repeat); err == nil {
		t.Fatal("the worker did not die")
	}
	again := doubtful(t, oneNode(payOnce(&receipt), effect), journal, repeat)
	if again.ID == q.ID || b.calls != 1 {
		t.Errorf("%d calls, question %s after %s", b.calls, again.ID, q.ID)
	}
}

func TestMisfitAsksAPerson(t *testing.T) {
	misfit := func(b *bank) graphadapter.Effect {
		e := b.effect(ledger.TargetKeyed)
		e.Check = func(_, receipt pregel.Value) error {
			if string(receipt) == `"rf-right"` {
				return nil
			}
			return errors.New("the amount is 25.00 instead of 250.00")
		}
		return e
	}
	for _, suspect := range []bool{false, true} { // the receipt of a call, or of a lookup
		b := &bank{}
		var receipt string
		g := oneNode(payOnce(&receipt), misfit(b))
		journal := mustJournal(t, nil)
		if suspect {
			_, _ = attemptOf(t, g, Env{})
			b.calls = 0
		}
		out, err := RunAttempt(t.Context(), g, payTask(), Env{Thread: "r-7", Suspect: suspect, Journal: journal})
		if err != nil || len(out.Questions) != 1 {
			t.Fatalf("suspect %v: %v, %d questions", suspect, err, len(out.Questions))
		}
		q := out.Questions[0]
		if !strings.Contains(string(q.Value), "25.00 instead of 250.00") || !strings.Contains(string(q.Value), `"receipt":"rf-`) {
			t.Errorf("suspect %v: question %s", suspect, q.Value)
		}
		// A receipt that does not fit either is asked about again; one that fits ends it.
		next := doubtful(t, g, journal, answerTo(q, `{"action":"done","receipt":"rf-wrong"}`))
		if !strings.Contains(string(next.Value), "given by ann does not fit") {
			t.Errorf("question %s", next.Value)
		}
		out, err = withAnswers(t, g, journal, answerTo(q, `{"action":"done","receipt":"rf-wrong"}`),
			answerTo(next, `{"action":"done","receipt":"rf-right"}`))
		if err != nil || len(out.Questions) > 0 || receipt != "rf-right" {
			t.Errorf("suspect %v: %v, %d questions, receipt %q", suspect, err, len(out.Questions), receipt)
		}
	}
}

func TestFoundReceiptIsAcceptedAsItIs(t *testing.T) {
	b := &bank{}
	e := b.effect(ledger.TargetKeyed)
	e.Check = func(_, _ pregel.Value) error { return errors.New("the amount is 25.00 instead of 250.00") }
	var receipt string
	g := oneNode(payOnce(&receipt), e)
	journal := mustJournal(t, nil)
	q := doubtful(t, g, journal)
	out, err := withAnswers(t, g, journal, answerTo(q, `{"action":"done"}`))
	if err != nil || len(out.Questions) > 0 || !strings.HasPrefix(receipt, "rf-") || b.calls != 1 {
		t.Errorf("%v, %d questions, receipt %q, %d calls", err, len(out.Questions), receipt, b.calls)
	}
}

// TestOutsideHasTheLastWord: while the question waits, the write turns up. The answer "repeat" does not repeat it.
func TestOutsideHasTheLastWord(t *testing.T) {
	b := &bank{}
	e := b.effect(ledger.TargetKeyed)
	sure := e.Lookup
	unsure := e
	unsure.Lookup = nil
	var receipt string
	journal := mustJournal(t, nil)
	q := doubtful(t, oneNode(payOnce(&receipt), unsure), journal)
	b.writes = append(b.writes, onlyEntry(t, journal).Key)
	e.Lookup = sure
	if _, err := withAnswers(t, oneNode(payOnce(&receipt), e), journal, answerTo(q, `{"action":"repeat"}`)); err != nil {
		t.Fatal(err)
	}
	checkPaid(t, b, journal, receipt)
}

// TestAPersonStopsWhateverTheOutsideSays: the outside was not clear when a person decided to stop, and is by the time the node runs again. The
// node stops. What the outside has is on record, and a retry goes on with it.
func TestAPersonStopsWhateverTheOutsideSays(t *testing.T) {
	for _, target := range []ledger.Target{ledger.TargetKeyed, ledger.TargetLookupOnly} {
		for says, want := range map[ledger.Finding]ledger.State{
			ledger.FindingCommitted: ledger.StateCommitted, ledger.FindingNotFound: ledger.StateUnknown, ledger.FindingUnknown: ledger.StateUnknown,
		} {
			t.Run(string(target)+" "+string(says), func(t *testing.T) {
				calls, finding := 0, ledger.FindingUnknown
				effect := graphadapter.Effect{Name: "payments.refund", Target: target,
					Do: func(context.Context, string, pregel.Value) (pregel.Value, error) {
						calls++
						return pregel.Value(`"rf-1"`), nil
					},
					Lookup: func(context.Context, string, pregel.Value) (graphadapter.Finding, error) {
						return graphadapter.Finding{Status: finding, Receipt: pregel.Value(`"rf-0"`)}, nil
					}}
				var receipt string
				g := oneNode(payOnce(&receipt), effect)
				journal := mustJournal(t, nil)
				q := doubtful(t, g, journal)
				finding = says
				fail := answerTo(q, `{"action":"fail"}`)
				_, err := withAnswers(t, g, journal, fail)
				if !graphadapter.IsPermanent(err) || !strings.Contains(err.Error(), "ann decided to stop") || calls != 0 || receipt != "" {
					t.Fatalf("%d calls, receipt %q, error %v", calls, receipt, err)
				}
				if e := onlyEntry(t, journal); e.State != want || e.Rulings != 1 {
					t.Fatalf("ledger %+v", e)
				}
				if says != ledger.FindingCommitted {
					return
				}
				if out, err := withAnswers(t, g, journal, fail); err != nil || len(out.Questions) > 0 || receipt != "rf-0" || calls != 0 {
					t.Errorf("retried: %d calls, receipt %q, %d questions, error %v", calls, receipt, len(out.Questions), err)
				}
			})
		}
	}
}
