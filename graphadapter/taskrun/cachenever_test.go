package taskrun

import (
	"context"
	"errors"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// TestWhatIsNeverKept: whatever depends on more than the input, or did more than return.
func TestWhatIsNeverKept(t *testing.T) {
	b := &bank{}
	task := func(ctx context.Context) *TaskRun {
		k, _ := TaskFrom(ctx)
		return k
	}
	for name, fn := range map[string]graphadapter.NodeFunc{
		"a failure": func(context.Context, graphadapter.Input) (pregel.Command, error) {
			return pregel.Command{}, errors.New("no")
		},
		"a panic":    func(context.Context, graphadapter.Input) (pregel.Command, error) { panic("boom") },
		"a question": calling(func(ctx context.Context, k *TaskRun) error { _, err := k.Ask(ctx, nil, nil, ""); return err }),
		"a drain":    calling(func(_ context.Context, k *TaskRun) error { k.Drain("stop"); return nil }),
		"a parent command": func(context.Context, graphadapter.Input) (pregel.Command, error) {
			return pregel.Command{Parent: &pregel.Command{}}, nil
		},
		"an effect": func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			return pregel.Command{}, payWith(ctx, task(ctx))
		},
		"a swallowed effect": func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			_ = payWith(ctx, task(ctx))
			return pregel.Command{}, nil
		},
		"an effect of a called graph": func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			inner := oneNode(calling(payWith), b.effect(ledger.TargetKeyed))
			_, err := InvokeNested(ctx, inner, pregel.Value(`{"amount":1}`))
			return pregel.Command{}, err
		},
	} {
		g, runs := keeping(graphadapter.CachePolicy{}, fn, b.effect(ledger.TargetKeyed))
		for range 2 {
			if out, _ := RunAttempt(t.Context(), g, payTask(), Env{Thread: "r-7"}); out.Cached {
				t.Errorf("%s was reused", name)
			}
		}
		if *runs != 2 {
			t.Errorf("%s: the node ran %d times", name, *runs)
		}
	}
}

func payWith(ctx context.Context, k *TaskRun) error {
	_, err := k.Effect(ctx, "payments.refund", pregel.Value(`{}`), graphadapter.CallOptions{})
	return err
}

// TestAnAnswerIsNotReused: neither is what came of one kept, nor does a task that was answered take another's result.
func TestAnAnswerIsNotReused(t *testing.T) {
	var question string
	g, runs := keeping(graphadapter.CachePolicy{}, func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		k, _ := TaskFrom(ctx)
		answer, err := k.Ask(ctx, nil, nil, "")
		return pregel.Command{Update: []pregel.Write{{Channel: "amount", Value: answer}}}, err
	})
	out := mustAttempt(t, g, payTask(), Env{Thread: "r-7"})
	question = out.Questions[0].ID
	for _, answer := range []string{"1", "2"} {
		task := payTask()
		task.Answers = []pregel.Answer{{QuestionID: question, Value: pregel.Value(answer)}}
		if out := mustAttempt(t, g, task, Env{Thread: "r-7"}); out.Cached || string(out.Update[0].Value) != answer {
			t.Errorf("answered %s it came back with %+v", answer, out)
		}
	}
	if *runs != 3 {
		t.Errorf("the node ran %d times", *runs)
	}
}

// TestOnlyAFirstAttemptLooks: one that may have acted before goes on with it. Its success is kept.
func TestOnlyAFirstAttemptLooks(t *testing.T) {
	g, runs := keeping(graphadapter.CachePolicy{}, doubled)
	acted := mustJournal(t, nil)
	if err := acted.Record(t.Context(), ledger.Entry{Key: "k", Kind: ledger.KindEffect, State: ledger.StateIntent}); err != nil {
		t.Fatal(err)
	}
	mustAttempt(t, g, payTask(), Env{Attempt: 2})
	for _, env := range []Env{{Attempt: 2}, {Suspect: true}, {Journal: acted}} {
		if out := mustAttempt(t, g, payTask(), env); out.Cached {
			t.Errorf("with %+v it reused a result", env)
		}
	}
	if out := mustAttempt(t, g, payTask(), Env{Attempt: 1}); !out.Cached || *runs != 4 {
		t.Errorf("the first attempt of another task came back with %+v after %d runs", out, *runs)
	}
}
