package taskrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

func counted(calls *atomic.Int32, v string) MemoFunc {
	return func(context.Context) (pregel.Value, error) {
		calls.Add(1)
		return pregel.Value(v), nil
	}
}

func TestMemoIsCalledOnce(t *testing.T) {
	var calls atomic.Int32
	fail := true
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		for i := range 3 {
			v, err := t.Memo(ctx, "llm", "", counted(&calls, fmt.Sprint(i)))
			if err != nil || string(v) != fmt.Sprint(i) {
				return fmt.Errorf("call %d: %s, %w", i, v, err)
			}
		}
		if _, err := t.Memo(ctx, "llm", "by key", counted(&calls, `{"a": 1}`)); err != nil {
			return err
		}
		if fail {
			return io.EOF
		}
		return nil
	}))
	journal := mustJournal(t, nil)
	out, err := attemptOf(t, g, Env{Journal: journal})
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	fail = false
	task := payTask()
	task.Ledger = out.Ledger // the ledger travels in a failed outcome too
	if _, err := RunAttempt(t.Context(), g, task, Env{Thread: "r-7"}); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 4 {
		t.Errorf("%d calls, want 4", calls.Load())
	}
	entries := journal.Entries()
	if len(entries) != 4 || entries[3].Kind != ledger.KindTask || string(entries[3].Result) != `{"a":1}` {
		t.Errorf("ledger %+v", entries)
	}
	if _, err := attemptOf(t, g, Env{Thread: "r-8", Journal: journal}); err != nil || calls.Load() != 8 {
		t.Errorf("another thread: %d calls, %v", calls.Load(), err)
	}
}

func TestMemoErrorIsNotRemembered(t *testing.T) {
	journal := mustJournal(t, nil)
	for _, result := range []error{io.EOF, nil} {
		_, err := attemptOf(t, oneNode(calling(func(ctx context.Context, t *TaskRun) error {
			_, err := t.Memo(ctx, "llm", "", func(context.Context) (pregel.Value, error) { return pregel.Value("1"), result })
			return err
		})), Env{Journal: journal})
		if !errors.Is(err, result) {
			t.Errorf("got %v, want %v", err, result)
		}
	}
	if e := onlyEntry(t, journal); string(e.Result) != "1" {
		t.Errorf("ledger %+v", e)
	}
}

func TestMemoWhoseRecordFails(t *testing.T) {
	lost := errors.New("the server is away")
	_, err := attemptOf(t, oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		_, err := t.Memo(ctx, "llm", "", func(context.Context) (pregel.Value, error) { return nil, nil })
		return err
	})), Env{Journal: failingJournal{mustJournal(t, nil), lost}})
	if !errors.Is(err, lost) || !strings.Contains(err.Error(), `task "llm" of node "pay"`) {
		t.Errorf("got %v", err)
	}
}

func TestMemoInsideItself(t *testing.T) {
	_, err := attemptOf(t, oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		_, err := t.Memo(ctx, "a", "k", func(ctx context.Context) (pregel.Value, error) {
			inner, _ := TaskFrom(ctx)
			return inner.Memo(ctx, "a", "k", func(context.Context) (pregel.Value, error) { return nil, nil })
		})
		return err
	})), Env{})
	if err == nil || !strings.Contains(err.Error(), "inside itself") {
		t.Errorf("got %v", err)
	}
}

// TestParallelCallsAreNumberedInCallOrder: the calls end in any order, and nested ones run in any order; each still
// finds its own record.
func TestParallelCallsAreNumberedInCallOrder(t *testing.T) {
	const n = 40
	journal := mustJournal(t, nil)
	var calls atomic.Int32
	run := func(reverse bool) {
		g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
			gates := make([]chan struct{}, n)
			pending := make([]*Pending, n)
			for i := range n {
				gates[i] = make(chan struct{})
				pending[i] = t.MemoGo(ctx, "outer", "", func(ctx context.Context) (pregel.Value, error) {
					<-gates[i]
					inner, _ := TaskFrom(ctx)
					return inner.Memo(ctx, "inner", "", counted(&calls, fmt.Sprint(i)))
				})
			}
			for i := range n {
				at := i
				if reverse {
					at = n - 1 - i
				}
				close(gates[at])
				if v, err := pending[at].Get(ctx); err != nil || string(v) != fmt.Sprint(at) {
					return fmt.Errorf("call %d: %s, %w", at, v, err)
				}
			}
			return nil
		}))
		if _, err := attemptOf(t, g, Env{Journal: journal}); err != nil {
			t.Error(err)
		}
	}
	run(false)
	run(true)
	if calls.Load() != n {
		t.Errorf("%d calls, want %d", calls.Load(), n)
	}
}

func TestNodeWaitsForFuturesNobodyAwaits(t *testing.T) {
	journal := mustJournal(t, nil)
	node := calling(func(ctx context.Context, t *TaskRun) error {
		release := make(chan struct{})
		t.MemoGo(ctx, "a", "", func(ctx context.Context) (pregel.Value, error) {
			<-release
			inner, _ := TaskFrom(ctx)
			inner.MemoGo(ctx, "b", "", func(context.Context) (pregel.Value, error) { return pregel.Value("2"), nil })
			return pregel.Value("1"), nil
		})
		t.MemoGo(ctx, "c", "", func(context.Context) (pregel.Value, error) { return nil, io.EOF })
		t.MemoGo(ctx, "d", "", func(context.Context) (pregel.Value, error) { panic("boom") })
		go close(release)
		return nil
	})
	if _, err := attemptOf(t, oneNode(node), Env{Journal: journal}); err != nil {
		t.Fatal(err) // the error of a call that nobody awaits belongs to nobody
	}
	if got := len(journal.Entries()); got != 2 {
		t.Errorf("%d results recorded, want 2", got)
	}
}

func TestFutureErrors(t *testing.T) {
	_, err := attemptOf(t, oneNode(calling(func(ctx context.Context, run *TaskRun) error {
		var p *graphadapter.PanicError
		if _, err := run.MemoGo(ctx, "a", "", func(context.Context) (pregel.Value, error) { panic("boom") }).Get(ctx); !errors.As(err, &p) {
			t.Errorf("panic: %v", err)
		}
		if _, err := run.MemoGo(ctx, "a", "", func(context.Context) (pregel.Value, error) { runtime.Goexit(); return nil, nil }).Get(ctx); !errors.As(err, &p) {
			t.Errorf("goexit: %v", err)
		}
		release := make(chan struct{})
		pending := run.MemoGo(ctx, "a", "", func(context.Context) (pregel.Value, error) { <-release; return nil, nil })
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := pending.Get(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		close(release)
		for range 2 {
			if v, err := pending.Get(ctx); err != nil || string(v) != "null" {
				t.Errorf("%s, %v", v, err)
			}
		}
		_, err := pending.Get(gone) // what is there is returned, whatever became of ctx
		return err
	})), Env{})
	if err != nil {
		t.Error(err)
	}
}
