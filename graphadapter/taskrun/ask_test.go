package taskrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

func ask(ctx context.Context, t *TaskRun, question, key string) (string, error) {
	v, err := t.Ask(ctx, pregel.Value(question), nil, key)
	return string(v), err
}

func TestTaskWaitsOnceItAsked(t *testing.T) {
	for name, after := range map[string]func(error) error{
		"it returns the error":  func(err error) error { return err },
		"it swallows the error": func(error) error { return nil },
		"it fails otherwise":    func(error) error { return errors.New("boom") },
		"it panics":             func(error) error { panic("boom") },
	} {
		g := oneNode(func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			run, _ := TaskFrom(ctx)
			_ = run.Emit(pregel.Value("1"))
			_, err := ask(ctx, run, `"sure?"`, "")
			if !errors.Is(err, graphadapter.ErrInterrupted) {
				t.Errorf("%s: asked: %v", name, err)
			}
			return pregel.Command{Update: []pregel.Write{write("amount", "1")}}, after(err)
		})
		out, err := attemptOf(t, g, Env{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(out.Questions) != 1 || out.Update != nil || len(out.Emitted) != 1 {
			t.Errorf("%s: outcome %+v", name, out)
		}
	}
}

func TestTaskThatAskedWaitsThoughItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := oneNode(nil)
		release := make(chan struct{})
		defer close(release)
		g.Nodes["pay"] = graphadapter.Node{RunTimeout: time.Second, Run: calling(func(ctx context.Context, t *TaskRun) error {
			_, _ = ask(ctx, t, "1", "")
			<-release // deaf to its context
			return nil
		})}
		out, err := attemptOf(t, g, Env{})
		if err != nil || len(out.Questions) != 1 {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestQuestionIDs(t *testing.T) {
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		for _, key := range []string{"", "", "k", "k", "l"} {
			_, _ = ask(ctx, t, `"q"`, key)
		}
		return nil
	}))
	ids := map[string]string{}
	add := func(where string, task *pregel.Task, thread string) {
		out, err := RunAttempt(t.Context(), g, task, Env{Thread: thread, Attempt: 2})
		if err != nil || len(out.Questions) != 4 {
			t.Fatalf("%s: %d questions, %v", where, len(out.Questions), err)
		}
		for i, q := range out.Questions {
			name := fmt.Sprintf("%s question %d", where, i)
			if q.Ordinal != i || len(q.ID) != 10 || !strings.HasPrefix(q.ID, "q-") {
				t.Errorf("%s: %+v", name, q)
			}
			if other, taken := ids[q.ID]; taken {
				t.Errorf("%s and %s are both %s", name, other, q.ID)
			}
			ids[q.ID] = name
		}
	}
	add("task", payTask(), "r-7")
	add("another thread", payTask(), "r-8")
	for where, change := range map[string]func(*pregel.Task){
		"step":      func(k *pregel.Task) { k.Step = 4 },
		"path":      func(k *pregel.Task) { k.Path = "pay:1" },
		"namespace": func(k *pregel.Task) { k.Namespace = "2/sub" },
		"branch":    func(k *pregel.Task) { k.Branch = "b1" },
	} {
		task := payTask()
		change(task)
		add(where, task, "r-7")
	}
}

func TestAnswersComeBackByID(t *testing.T) {
	var got []string
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		got = nil
		for _, question := range []string{`"first"`, `"second"`} {
			answer, err := ask(ctx, t, question, "")
			if err != nil {
				return err
			}
			got = append(got, answer)
		}
		return nil
	}))
	task := payTask()
	for _, answer := range []string{`{"a": 1}`, ""} {
		out, err := RunAttempt(t.Context(), g, task, Env{Thread: "r-7"})
		if err != nil || len(out.Questions) != 1 || out.Questions[0].Ordinal != len(task.Answers) {
			t.Fatalf("%+v, %v", out.Questions, err)
		}
		task.Answers = append(task.Answers, pregel.Answer{QuestionID: out.Questions[0].ID, Value: pregel.Value(answer)})
	}
	task.Answers[1].Value = nil // no value is null
	if out, err := RunAttempt(t.Context(), g, task, Env{Thread: "r-7"}); err != nil || len(out.Questions) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if len(got) != 2 || got[0] != `{"a": 1}` || got[1] != "null" {
		t.Errorf("answers %q", got)
	}
}

func TestQuestionsInParallelCalls(t *testing.T) {
	const n = 20
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		pending := make([]*Pending, n)
		for i := range pending {
			pending[i] = t.MemoGo(ctx, "one", "", func(ctx context.Context) (pregel.Value, error) {
				run, _ := TaskFrom(ctx)
				first, err := run.Ask(ctx, pregel.Value(fmt.Sprint(i)), nil, "")
				if err != nil && i%2 == 0 {
					return nil, nil // swallowed: it must be asked again all the same
				}
				return first, err
			})
		}
		for i, p := range pending {
			v, err := p.Get(ctx)
			if err != nil {
				return err
			}
			if string(v) != fmt.Sprint(i) {
				return fmt.Errorf("call %d has the answer %s", i, v)
			}
		}
		return nil
	}))
	task := payTask()
	out, err := RunAttempt(t.Context(), g, task, Env{Thread: "r-7"})
	if err != nil || len(out.Questions) != n {
		t.Fatalf("%d questions, %v", len(out.Questions), err)
	}
	for _, q := range out.Questions { // each is answered with its own number
		task.Answers = append(task.Answers, pregel.Answer{QuestionID: q.ID, Value: q.Value})
	}
	task.Ledger = out.Ledger
	if out, err = RunAttempt(t.Context(), g, task, Env{Thread: "r-7"}); err != nil || len(out.Questions) > 0 {
		t.Errorf("%d questions, %v", len(out.Questions), err)
	}
}

func TestEmitIsBounded(t *testing.T) {
	big := pregel.Value(`"` + strings.Repeat("x", MaxEmittedValue-2) + `"`)
	for _, c := range []struct {
		name  string
		value pregel.Value
		kept  int
		limit int
	}{
		{"count", pregel.Value("1"), MaxEmitted, MaxEmitted},
		{"total", big, 4, MaxEmittedTotal},
		{"size", append(big[:len(big):len(big)], ' ', ' '), 4, MaxEmittedTotal}, // white space does not count
		{"one too big", pregel.Value(`"y` + string(big[1:])), 0, MaxEmittedValue},
	} {
		var live int
		g := oneNode(calling(func(_ context.Context, t *TaskRun) error {
			for {
				if err := t.Emit(c.value); err != nil {
					return err
				}
			}
		}))
		out, err := attemptOf(t, g, Env{Emit: func(pregel.Emission) { live++ }})
		var over *graphadapter.EmitLimitError
		if !errors.As(err, &over) || over.Limit != c.limit || live != c.kept || len(out.Emitted) != c.kept {
			t.Errorf("%s: %d live, %d kept, %v", c.name, live, len(out.Emitted), err)
		}
	}
}

func TestNotJSON(t *testing.T) {
	_, err := attemptOf(t, oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		if _, err := t.Ask(ctx, pregel.Value("{"), nil, ""); err == nil {
			return errors.New("asked")
		}
		if t.Emit(pregel.Value("nope")) == nil {
			return errors.New("emitted")
		}
		return nil
	})), Env{})
	if err != nil {
		t.Error(err)
	}
}
