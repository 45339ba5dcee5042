package host_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// server keeps the heartbeats of one task.
type server struct {
	task   *host.Task
	beats  []graphadapter.Progress
	now    time.Time
	refuse error
}

func (s *server) Send(context.Context) error {
	if s.refuse == nil {
		s.beats = append(s.beats, s.task.Progress())
	}
	return s.refuse
}

func (s *server) Store(ctx context.Context) error   { return s.Send(ctx) }
func (s *server) Lost() error                       { return nil }
func (s *server) Held() error                       { return nil }
func (s *server) Confirm(ctx context.Context) error { return nil }
func (s *server) Now() time.Time                    { return s.now }

// flaky is a graph whose node remembers a call if it is to, and fails.
func flaky(remembers bool) *graphadapter.Graph {
	return &graphadapter.Graph{Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "g", Nodes: []pregel.NodeSpec{{Name: "work"}}},
		Nodes: map[string]graphadapter.Node{"work": {Retry: []graphadapter.RetryPolicy{{InitialInterval: time.Minute, NoJitter: true, MaxAttempts: 2}},
			Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
				if task, _ := taskrun.TaskFrom(ctx); remembers {
					if _, err := task.Memo(ctx, "call", "", func(context.Context) (pregel.Value, error) { return pregel.Value(`1`), nil }); err != nil {
						return pregel.Command{}, err
					}
				}
				return pregel.Command{}, errors.New("not yet")
			}}}}
}

func open(t *testing.T, s *server, task pregel.Task, attempt int32, kept graphadapter.Progress) {
	t.Helper()
	var err error
	s.task, err = host.Open(&graphadapter.NodeRequest{Graph: "g", Thread: "r-7", Task: task},
		host.Execution{Attempt: attempt, Repeated: attempt > 1}, kept, s)
	if err != nil {
		t.Fatal(err)
	}
}

// TestAFailedAttemptIsOnRecordBeforeItsWait: in a heartbeat, and with the run when the task has recorded something. The next
// execution does not begin too early, and fails for good when the policy says so.
func TestAFailedAttemptIsOnRecordBeforeItsWait(t *testing.T) {
	for name, remembers := range map[string]bool{"without news": false, "with news": true} {
		t.Run(name, func(t *testing.T) {
			s, task := &server{now: time.Now()}, pregel.Task{Step: 1, Path: "work", Node: "work"}
			open(t, s, task, 1, graphadapter.Progress{})
			out, err := s.task.Run(t.Context(), flaky(remembers), taskrun.Env{})
			var again *host.RetryError
			if remembers {
				if err != nil || !out.Yielded {
					t.Fatalf("the attempt ended with %+v, %v", out, err)
				}
				task.Ledger, s.beats = out.Ledger, append(s.beats[:0], graphadapter.Progress{})
			} else if !errors.As(err, &again) || again.After != time.Minute || len(s.beats) != 1 {
				t.Fatalf("the attempt ended with %v after %d heartbeats", err, len(s.beats))
			}
			kept := s.beats[len(s.beats)-1]
			open(t, s, task, 2, kept)
			if early := s.task.Early(); early == nil || early.After != time.Minute {
				t.Errorf("too early by %v", early)
			}
			s.now = s.now.Add(time.Minute)
			open(t, s, task, 3, kept)
			if early := s.task.Early(); early != nil {
				t.Errorf("too early by %v", early)
			}
			if out, err = s.task.Run(t.Context(), flaky(remembers), taskrun.Env{}); err != nil || out.Error == nil || out.Error.Message != "not yet" {
				t.Errorf("the last attempt ended with %+v, %v", out, err)
			}
		})
	}
}

// TestACallIsNotMadeThatCannotBeRecorded: the server does not confirm what announces it.
func TestACallIsNotMadeThatCannotBeRecorded(t *testing.T) {
	called := false
	g := flaky(false)
	g.Effects = map[string]graphadapter.Effect{"pay": {Name: "pay", Do: func(context.Context, string, pregel.Value) (pregel.Value, error) {
		called = true
		return pregel.Null, nil
	}}}
	g.Nodes["work"] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		_, err := task.Effect(ctx, "pay", pregel.Value(`{}`), graphadapter.CallOptions{})
		return pregel.Command{}, err
	}}
	s := &server{now: time.Now(), refuse: graphadapter.ErrFenced}
	open(t, s, pregel.Task{Step: 1, Path: "work", Node: "work"}, 1, graphadapter.Progress{})
	if _, err := s.task.Run(t.Context(), g, taskrun.Env{}); !errors.Is(err, graphadapter.ErrFenced) || called {
		t.Errorf("called: %t, and it ended with %v", called, err)
	}
}
