package taskrun

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

var errDied = errors.New("the process died here")

// process is a worker process that dies at one of its steps: nothing that it does afterwards has any effect.
type process struct {
	dieAt, steps int
	dead         bool
}

// step reports whether the process lives; it may die right here.
func (p *process) step() bool {
	if p.dead {
		return false
	}
	if p.steps == p.dieAt {
		p.dead = true
	}
	p.steps++
	return !p.dead
}

// mortalJournal is the journal as that process reaches it: a record can be lost, or stored without being told.
type mortalJournal struct {
	Journal
	p *process
}

func (j mortalJournal) Record(ctx context.Context, e ledger.Entry) error {
	if !j.p.step() {
		return errDied
	}
	if err := j.Journal.Record(ctx, e); err != nil {
		return err
	}
	if !j.p.step() {
		return errDied
	}
	return nil
}

// mortal is the effect as that process makes it: it can die before the target writes, or before it knows.
func mortal(e graphadapter.Effect, p *process) graphadapter.Effect {
	do := e.Do
	e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		if !p.step() {
			panic(errDied)
		}
		receipt, err := do(ctx, key, params)
		if !p.step() {
			panic(errDied)
		}
		return receipt, err
	}
	return e
}

// never is a step that no process reaches.
const never = 1 << 20

// TestNoCrashRepeatsAWrite kills two processes in a row, each at every step, and lets the third finish. Whatever the
// target guarantees, it has exactly one write in the end, and the node has its receipt.
func TestNoCrashRepeatsAWrite(t *testing.T) {
	for _, target := range []ledger.Target{ledger.TargetKeyed, ledger.TargetLookupOnly, ledger.TargetNone} {
		for first := range 6 {
			for second := range 8 {
				t.Run(fmt.Sprintf("%s/%d/%d", target, first, second), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { crashTwice(t, target, first, second) })
				})
			}
		}
	}
}

func crashTwice(t *testing.T, target ledger.Target, first, second int) {
	b := &bank{}
	journal := mustJournal(t, nil)
	var receipt string
	var answers []pregel.Answer
	attempt := 0
	for _, dieAt := range []int{first, second, never, never, never, never} {
		attempt++
		p := &process{dieAt: dieAt}
		g := oneNode(payOnce(&receipt), mortal(b.effect(target), p))
		task := payTask()
		task.Answers = answers
		out, err := RunAttempt(t.Context(), g, task, Env{
			Thread: "r-7", Attempt: attempt, Suspect: attempt > 1, Journal: mortalJournal{journal, p},
		})
		switch {
		case p.dead:
			if err == nil {
				t.Fatalf("attempt %d died and succeeded", attempt)
			}
		case err != nil:
			t.Fatalf("attempt %d: %v", attempt, err)
		case len(out.Questions) > 0:
			if target != ledger.TargetNone {
				t.Fatalf("a person was asked about a target that is %s: %s", target, out.Questions[0].Value)
			}
			answers = append(answers, askBank(b, onlyEntry(t, journal).Key, out.Questions[0]))
		default:
			checkPaid(t, b, journal, receipt)
			return
		}
	}
	t.Fatal("no attempt finished")
}

// askBank is the person who looks at the bank's books and says what is there.
func askBank(b *bank, key string, q pregel.Question) pregel.Answer {
	answer := `{"action":"repeat"}`
	if b.has(key) {
		answer = fmt.Sprintf(`{"action":"done","receipt":%s}`, b.receipt(key))
	}
	return pregel.Answer{QuestionID: q.ID, Value: pregel.Value(answer), By: "ann"}
}

func checkPaid(t *testing.T, b *bank, journal Journal, receipt string) {
	t.Helper()
	e := onlyEntry(t, journal)
	if len(b.writes) != 1 || b.writes[0] != e.Key {
		t.Errorf("the bank has the writes %v, want one of key %s", b.writes, e.Key)
	}
	if e.State != ledger.StateCommitted || "\""+receipt+"\"" != string(e.Result) || receipt != "rf-"+e.Key[:6] {
		t.Errorf("the node has the receipt %q, the ledger %+v", receipt, e)
	}
}

// TestWithoutTheRuleAWriteIsRepeated shows that the harness can see a repeated write: a worker that calls without
// asking makes two.
func TestWithoutTheRuleAWriteIsRepeated(t *testing.T) {
	b := &bank{}
	for _, dieAt := range []int{3, never} { // died with the receipt in hand; the ledger is lost
		p := &process{dieAt: dieAt}
		var receipt string
		g := oneNode(payOnce(&receipt), mortal(b.effect(ledger.TargetLookupOnly), p))
		_, _ = attemptOf(t, g, Env{Journal: mortalJournal{mustJournal(t, nil), p}})
	}
	if len(b.writes) != 2 {
		t.Errorf("the bank has %d writes, want the 2 of an unsuspecting worker", len(b.writes))
	}
}

// TestALateCallOfAFrozenWorkerIsFound: an attempt freezes inside its call; another one takes over, looks up and finds
// nothing; then the call goes through. A target that only finds keys is looked up again after the call's deadline.
func TestALateCallOfAFrozenWorkerIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{}
		effect := b.effect(ledger.TargetLookupOnly)
		journal := mustJournal(t, nil)
		thaw := make(chan struct{})
		frozen := effect
		frozen.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
			<-thaw
			return effect.Do(ctx, key, params)
		}
		var lost, receipt string
		fence := &fence{Journal: journal}
		done := make(chan error, 1)
		go func() {
			_, err := RunAttempt(t.Context(), oneNode(payOnce(&lost), frozen), payTask(), Env{Thread: "r-7", Journal: fence})
			done <- err
		}()
		synctest.Wait()
		fence.close()
		go func() {
			synctest.Wait() // until the second attempt waits for the first one's call to settle
			close(thaw)
		}()
		if _, err := attemptOf(t, oneNode(payOnce(&receipt), effect), Env{Attempt: 2, Suspect: true, Journal: journal}); err != nil {
			t.Fatal(err)
		}
		checkPaid(t, b, journal, receipt)
		if b.lookups != 2 || b.calls != 1 {
			t.Errorf("%d lookups and %d calls, want 2 and 1", b.lookups, b.calls)
		}
		if err := <-done; !errors.Is(err, graphadapter.ErrFenced) {
			t.Errorf("the frozen attempt ended with %v", err)
		}
		if e := onlyEntry(t, journal); e.Evidence != "lookup after crash" {
			t.Errorf("evidence %q", e.Evidence)
		}
	})
}

// fence is a journal that its attempt lost.
type fence struct {
	Journal
	shut bool
}

func (f *fence) close() { f.shut = true }

func (f *fence) Record(ctx context.Context, e ledger.Entry) error {
	if f.shut {
		return graphadapter.ErrFenced
	}
	return f.Journal.Record(ctx, e)
}
