package taskrun

import (
	"context"
	"errors"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

func write(channel, value string) pregel.Write {
	return pregel.Write{Channel: channel, Value: pregel.Value(value)}
}

func TestAttemptReturnsWhatTheNodeDid(t *testing.T) {
	var got graphadapter.Input
	g := oneNode(func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
		got = in
		run, _ := TaskFrom(ctx)
		_ = run.Emit(pregel.Value(`{"at": 1}`))
		return pregel.Command{
			Update: []pregel.Write{write("amount", "1")},
			Goto:   []pregel.Target{{Node: "other", Send: true}},
		}, nil
	})
	out, err := attemptOf(t, g, Env{})
	if err != nil {
		t.Fatal(err)
	}
	want := pregel.Outcome{Emitted: []pregel.Emission{{Value: pregel.Value(`{"at":1}`)}}, Command: pregel.Command{
		Update: []pregel.Write{write("amount", "1")},
		Goto:   []pregel.Target{{Node: "other", Send: true, Arg: pregel.Null}}, // a Send of nothing sends null
	}}
	if !reflect.DeepEqual(out, want) {
		t.Errorf("got %+v, want %+v", out, want)
	}
	if got.State["amount"].String() != "250" || got.Arg != nil {
		t.Errorf("input %+v", got)
	}
}

func TestNodeReadsOnlyItsChannels(t *testing.T) {
	var got []string
	g := oneNode(func(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
		got = slices.Sorted(maps.Keys(in.State))
		return pregel.Command{}, nil
	})
	g.Spec.Nodes[0].Reads = []string{"amount"}
	g.Nodes["pay"] = graphadapter.Node{Run: g.Nodes["pay"].Run, Branches: []graphadapter.BranchFunc{
		func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
			return []pregel.Target{{Node: strings.Trim(string(s["log"].Value()), `["]`)}}, nil
		},
	}}
	task := payTask()
	task.State["log"] = pregel.Hold(pregel.Value(`["other"]`))
	task.Branches = []pregel.Branch{{From: "pay"}}
	out, err := RunAttempt(t.Context(), g, task, Env{})
	if err != nil || len(got) != 1 || got[0] != "amount" {
		t.Errorf("the node read %v, error %v", got, err)
	}
	if len(out.Routes) != 1 || out.Routes[0].Node != "other" {
		t.Errorf("routes %+v", out.Routes)
	}
}

func TestInfo(t *testing.T) {
	var got Info
	g := oneNode(calling(func(_ context.Context, t *TaskRun) error { got = t.Info(); return nil }))
	task := payTask()
	task.Namespace, task.Branch = "2/sub", "b1"
	if _, err := RunAttempt(t.Context(), g, task, Env{Thread: "r-7", Suspect: true}); err != nil {
		t.Fatal(err)
	}
	want := Info{Graph: "refund", Node: "pay", Thread: "r-7", Namespace: "2/sub", Path: "pay", Branch: "b1",
		Step: 3, Attempt: 1, StepsLeft: 7, Suspect: true}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestUnservedTasksDoNotRun(t *testing.T) {
	g := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) { panic("it ran") })
	g.Nodes["sub"] = graphadapter.Node{}
	for _, c := range []struct {
		name    string
		change  func(*pregel.Task)
		missing string
	}{
		{"node", func(k *pregel.Task) { k.Node = "nobody" }, "node"},
		{"node without a function", func(k *pregel.Task) { k.Node = "sub" }, "node"},
		{"subgraph", func(k *pregel.Task) { k.Graph = []string{"checks"} }, "subgraph"},
		{"branch", func(k *pregel.Task) { k.Branches = []pregel.Branch{{From: "pay", Ordinal: 1}} }, "branch 1"},
	} {
		task := payTask()
		c.change(task)
		_, err := RunAttempt(t.Context(), g, task, Env{})
		var unserved *graphadapter.UnservedError
		if !errors.As(err, &unserved) || unserved.Missing != c.missing {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestSubgraphNode(t *testing.T) {
	inner := oneNode(calling(func(_ context.Context, t *TaskRun) error { return errors.New(t.Info().Graph) }))
	inner.Spec.Name = "checks"
	g := oneNode(nil)
	g.Subgraphs = map[string]*graphadapter.Graph{"checks": inner}
	task := payTask()
	task.Graph = []string{"checks"}
	if _, err := RunAttempt(t.Context(), g, task, Env{}); err == nil || err.Error() != "checks" {
		t.Errorf("got %v", err)
	}
}

func TestPanicIsAFailure(t *testing.T) {
	cause := errors.New("no such order")
	for _, value := range []any{"boom", cause} {
		_, err := attemptOf(t, oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) { panic(value) }), Env{})
		var p *graphadapter.PanicError
		if !errors.As(err, &p) || !strings.Contains(string(p.Stack), "execute_test.go") {
			t.Fatalf("%v: %v", value, err)
		}
		if strings.Contains(err.Error(), "goroutine") {
			t.Errorf("the stack is in the message: %s", err)
		}
		if value == any(cause) && !errors.Is(err, cause) {
			t.Errorf("%v does not wrap its cause", err)
		}
	}
}

func TestGoexitIsAFailure(t *testing.T) {
	_, err := attemptOf(t, oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) {
		runtime.Goexit() // t.FailNow, in a node under test
		return pregel.Command{}, nil
	}), Env{})
	var p *graphadapter.PanicError
	if !errors.As(err, &p) {
		t.Errorf("got %v", err)
	}
}

func TestParentCommandExcludesTheRest(t *testing.T) {
	command := pregel.Command{Parent: &pregel.Command{Update: []pregel.Write{write("amount", "1")}}}
	g := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) { return command, nil })
	g.Nodes["pay"] = graphadapter.Node{Run: g.Nodes["pay"].Run, Branches: []graphadapter.BranchFunc{
		func(context.Context, graphadapter.State) ([]pregel.Target, error) { panic("routed") },
	}}
	task := payTask()
	task.Branches = []pregel.Branch{{From: "pay"}}
	out, err := RunAttempt(t.Context(), g, task, Env{})
	if err != nil || out.Parent == nil || out.Routes != nil {
		t.Errorf("%+v, %v", out, err)
	}
	command.Update = []pregel.Write{write("amount", "1")}
	if _, err = RunAttempt(t.Context(), g, task, Env{}); !graphadapter.IsPermanent(err) {
		t.Errorf("parent and update: %v", err)
	}
}

// release is the key of a channel that frees a deaf node at the end of its test.
type release struct{}

func TestTimeouts(t *testing.T) {
	obedient := calling(func(ctx context.Context, _ *TaskRun) error { <-ctx.Done(); return ctx.Err() })
	late := calling(func(ctx context.Context, _ *TaskRun) error { <-ctx.Done(); return nil })
	deaf := calling(func(ctx context.Context, _ *TaskRun) error {
		<-ctx.Value(release{}).(chan struct{})
		return nil
	})
	busy := calling(func(ctx context.Context, t *TaskRun) error {
		for range 5 {
			time.Sleep(time.Second)
			t.Beat()
		}
		<-ctx.Done()
		return ctx.Err()
	})
	for _, c := range []struct {
		name      string
		node      graphadapter.NodeFunc
		run, idle time.Duration
		kind      string
		after     time.Duration
	}{
		{"run", obedient, 10 * time.Second, 0, graphadapter.TimeoutRun, 10 * time.Second},
		{"idle", obedient, 0, 2 * time.Second, graphadapter.TimeoutIdle, 2 * time.Second},
		{"idle first", obedient, 10 * time.Second, 2 * time.Second, graphadapter.TimeoutIdle, 2 * time.Second},
		{"progress", busy, 0, 2 * time.Second, graphadapter.TimeoutIdle, 7 * time.Second},
		{"a late result is discarded", late, time.Second, 0, graphadapter.TimeoutRun, time.Second},
		{"a deaf node is left behind", deaf, time.Second, 0, graphadapter.TimeoutRun, time.Second + abandonAfter},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := oneNode(nil)
				g.Nodes["pay"] = graphadapter.Node{Run: c.node, RunTimeout: c.run, IdleTimeout: c.idle}
				start := time.Now()
				free := make(chan struct{})
				defer close(free)
				ctx := context.WithValue(t.Context(), release{}, free)
				_, err := RunAttempt(ctx, g, payTask(), Env{})
				var timeout *graphadapter.TimeoutError
				if !errors.As(err, &timeout) || timeout.Kind != c.kind || timeout.Node != "pay" {
					t.Errorf("got %v", err)
				}
				if left := timeout.LeftAfter > 0; left != (c.after > c.run+c.idle) && c.name != "progress" || left && !strings.Contains(err.Error(), "may still run beside") {
					t.Errorf("left behind after %v: %v", timeout.LeftAfter, err)
				}
				if took := time.Since(start); took != c.after {
					t.Errorf("took %v, want %v", took, c.after)
				}
				if _, again := graphadapter.RetryAfter([]graphadapter.RetryPolicy{{}}, 1, err); !again {
					t.Error("a timeout is not retried")
				}
			})
		})
	}
}

func TestTimeoutsOfTheSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := oneNode(calling(func(ctx context.Context, _ *TaskRun) error { <-ctx.Done(); return ctx.Err() }))
		g.Spec.Nodes[0].RunTimeout = 1500
		_, err := attemptOf(t, g, Env{})
		var timeout *graphadapter.TimeoutError
		if !errors.As(err, &timeout) || timeout.Limit != 1500*time.Millisecond {
			t.Errorf("got %v", err)
		}
	})
}

// TestTimeoutsOfASend: they replace the node's as a whole, as LangGraph's Send.timeout does; the rules are of section 2.5.
func TestTimeoutsOfASend(t *testing.T) {
	stuck := calling(func(ctx context.Context, _ *TaskRun) error { <-ctx.Done(); return ctx.Err() })
	for _, c := range []struct {
		name     string
		own      pregel.Timeouts
		kind     string
		want     time.Duration
		wantNone bool
	}{
		{"none", pregel.Timeouts{}, graphadapter.TimeoutIdle, 2 * time.Second, false},
		{"shorter", pregel.Timeouts{RunTimeout: 500}, graphadapter.TimeoutRun, 500 * time.Millisecond, false},
		{"longer", pregel.Timeouts{RunTimeout: 60_000}, graphadapter.TimeoutRun, time.Minute, false},
		{"idle only", pregel.Timeouts{IdleTimeout: 20_000}, graphadapter.TimeoutIdle, 20 * time.Second, false},
		{"negative", pregel.Timeouts{RunTimeout: -1, IdleTimeout: -5}, graphadapter.TimeoutIdle, 2 * time.Second, false},
		{"too large to count", pregel.Timeouts{RunTimeout: math.MaxInt64}, "", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := oneNode(nil)
				g.Nodes["pay"] = graphadapter.Node{Run: stuck, RunTimeout: 10 * time.Second, IdleTimeout: 2 * time.Second}
				task := payTask()
				task.Arg, task.Timeouts = pregel.Value(`{}`), c.own
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err := RunAttempt(ctx, g, task, Env{})
				var timeout *graphadapter.TimeoutError
				switch found := errors.As(err, &timeout); {
				case found == c.wantNone:
					t.Errorf("got %v", err)
				case found && (timeout.Kind != c.kind || timeout.Limit != c.want):
					t.Errorf("got %s after %v, want %s after %v", timeout.Kind, timeout.Limit, c.kind, c.want)
				}
			})
		})
	}
}

func TestLeftBehindNodeCanDoNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{}
		var emitted int
		results := make(chan error, 4)
		g := oneNode(nil, b.effect("keyed"))
		g.Nodes["pay"] = graphadapter.Node{RunTimeout: time.Second, Run: calling(func(ctx context.Context, run *TaskRun) error {
			time.Sleep(time.Minute)
			free := context.WithoutCancel(ctx)
			_, err := run.Effect(free, "payments.refund", nil, graphadapter.CallOptions{})
			results <- err
			_, err = run.Ask(free, nil, nil, "")
			results <- err
			results <- run.Emit(nil)
			_, err = run.MemoGo(free, "x", "", nil).Get(free)
			results <- err
			return nil
		})}
		if _, err := attemptOf(t, g, Env{Emit: func(pregel.Emission) { emitted++ }}); err == nil {
			t.Fatal("no error")
		}
		for range 4 {
			if err := <-results; !errors.Is(err, graphadapter.ErrFenced) {
				t.Errorf("got %v", err)
			}
		}
		if b.calls != 0 || emitted != 0 {
			t.Errorf("%d calls, %d values emitted", b.calls, emitted)
		}
	})
}

func TestCancelledFromOutside(t *testing.T) {
	stop := errors.New("the worker stops")
	for _, c := range []struct {
		name string
		node func(context.Context) error
		want error
	}{
		{"the node obeys", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, stop},
		{"the node says something else", func(ctx context.Context) error { <-ctx.Done(); return errors.New("half done") }, stop},
		{"the node is done all the same", func(ctx context.Context) error { <-ctx.Done(); return nil }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			g := oneNode(calling(func(ctx context.Context, _ *TaskRun) error {
				cancel(stop)
				return c.node(ctx)
			}))
			if _, err := RunAttempt(ctx, g, payTask(), Env{}); err != c.want { //nolint:errorlint // the cause itself
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestLostFenceOutweighsTheResult(t *testing.T) {
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		_, _ = t.Memo(ctx, "x", "", func(context.Context) (pregel.Value, error) { return nil, nil })
		return nil // the error is swallowed
	}))
	_, err := attemptOf(t, g, Env{Journal: failingJournal{mustJournal(t, nil), graphadapter.ErrFenced}})
	if !errors.Is(err, graphadapter.ErrFenced) {
		t.Errorf("got %v", err)
	}
	if _, again := graphadapter.RetryAfter([]graphadapter.RetryPolicy{{RetryOn: func(error) bool { return true }}}, 1, err); again {
		t.Error("a lost fence is retried")
	}
}

func TestStoredLedgerOfANewerVersion(t *testing.T) {
	task := payTask()
	task.Ledger = pregel.Value(`{"version":9,"entries":[]}`)
	if _, err := RunAttempt(t.Context(), oneNode(nil), task, Env{}); err == nil {
		t.Error("served without the node's function")
	}
	ran := false
	g := oneNode(calling(func(context.Context, *TaskRun) error { ran = true; return nil }))
	if _, err := RunAttempt(t.Context(), g, task, Env{}); err == nil || ran {
		t.Errorf("ran %v, error %v", ran, err)
	}
}

// TestACommandOfACalledGraphGoesSomewhere: the called graph does not know its caller's.
func TestACommandOfACalledGraphGoesSomewhere(t *testing.T) {
	for node, want := range map[string]string{"pay": "", pregel.End: "", "pya": `goes to "pya", which this graph does not have: it has pay`} {
		called := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) {
			return pregel.Command{Parent: &pregel.Command{Goto: []pregel.Target{{Node: node}}}}, nil
		})
		g := oneNode(calling(func(ctx context.Context, _ *TaskRun) error {
			_, err := InvokeNested(ctx, called, pregel.Value(`{"amount":1}`))
			return err
		}))
		out, err := attemptOf(t, g, Env{})
		switch {
		case want == "" && (err != nil || len(out.Goto) != 1 || out.Goto[0].Node != node):
			t.Errorf("%s: got %v, %v", node, out.Goto, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !graphadapter.IsPermanent(err)):
			t.Errorf("%s: got %v, want %s", node, err, want)
		}
	}
}
