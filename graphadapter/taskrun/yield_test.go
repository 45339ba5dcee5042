package taskrun

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// smallJournal holds what it is given and has room to store only so many entries of one execution. An intent beyond that
// it does not hold.
type smallJournal struct {
	*graphadapter.MemoryJournal
	room int
}

func (j *smallJournal) Record(ctx context.Context, e ledger.Entry) error {
	if j.room == 0 && e.State == ledger.StateIntent {
		return graphadapter.ErrYielded
	}
	if err := j.MemoryJournal.Record(ctx, e); err != nil {
		return err
	}
	if j.room == 0 {
		return graphadapter.ErrYielded
	}
	j.room--
	return nil
}

// untilDone runs a task with journals of that room until it is no longer given back.
func untilDone(t *testing.T, g *graphadapter.Graph, room int) (out pregel.Outcome, executions int) {
	t.Helper()
	task := payTask()
	for executions = 1; ; executions++ {
		outbox, err := OpenOutbox(task, nil, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		out, err = RunAttempt(t.Context(), g, task, Env{Thread: "r-7", Outbox: outbox, Journal: &smallJournal{&outbox.MemoryJournal, room}})
		if err != nil {
			t.Fatal(err)
		}
		if !out.Yielded {
			return out, executions
		}
		if len(out.Update) > 0 || len(out.Questions) > 0 {
			t.Fatalf("a task that was given back came with %+v", out)
		}
		task.Ledger = out.Ledger
	}
}

// TestAFullRecordGivesTheTaskBack: no call is made twice, whatever the node does with the error.
func TestAFullRecordGivesTheTaskBack(t *testing.T) {
	for name, swallow := range map[string]bool{"passed on": false, "swallowed": true} {
		t.Run(name, func(t *testing.T) {
			b := &bank{}
			calls := map[int]int{}
			g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
				for i := range 6 {
					_, err := t.Memo(ctx, "draw", "", func(context.Context) (pregel.Value, error) {
						calls[i]++
						return pregel.Value(fmt.Sprint(i)), nil
					})
					if err == nil {
						_, err = t.Effect(ctx, "payments.refund", pregel.Value(fmt.Sprint(i)), graphadapter.CallOptions{})
					}
					if err != nil && !swallow {
						return err
					}
				}
				return nil
			}), b.effect(ledger.TargetNone)) // one that nobody could ask
			out, executions := untilDone(t, g, 3)
			if len(b.writes) != 6 || b.calls != 6 || len(calls) != 6 || executions < 3 {
				t.Errorf("%d writes by %d calls in %d executions", len(b.writes), b.calls, executions)
			}
			for i, n := range calls {
				if n != 1 {
					t.Errorf("call %d was made %d times", i, n)
				}
			}
			if entries := mustJournal(t, out.Ledger).Entries(); len(entries) != 6 || entries[0].Kind != ledger.KindEffect {
				t.Errorf("a finished task keeps its effects alone: %+v", entries)
			}
		})
	}
}

// TestCallsUnderWayAreRecordedFirst, and no new one begins meanwhile.
func TestCallsUnderWayAreRecordedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow, late atomic.Int64
		g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
			begun := make(chan struct{}, 1)
			pending := t.MemoGo(ctx, "slow", "", func(ctx context.Context) (pregel.Value, error) {
				begun <- struct{}{}
				select {
				case <-time.After(time.Minute):
					slow.Add(1)
					return pregel.Value(`"slow"`), nil
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			})
			if slow.Load() == 0 {
				<-begun
			}
			_, err := t.Memo(ctx, "quick", "", func(context.Context) (pregel.Value, error) { return pregel.Value("1"), nil })
			if _, again := t.Memo(ctx, "late", "", func(context.Context) (pregel.Value, error) {
				late.Add(1)
				return pregel.Value("2"), nil
			}); again != nil && !errors.Is(again, graphadapter.ErrYielded) {
				return again
			}
			if err != nil {
				return err
			}
			_, err = pending.Get(ctx)
			return err
		}))
		_, executions := untilDone(t, g, 0)
		if slow.Load() != 1 || late.Load() != 1 || executions != 3 {
			t.Errorf("slow %d, late %d, %d executions", slow.Load(), late.Load(), executions)
		}
	})
}

// TestACallThatNeverEnds does not keep its task from being given back.
func TestACallThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
			begun := make(chan struct{})
			t.MemoGo(ctx, "waits", "", func(ctx context.Context) (pregel.Value, error) {
				close(begun)
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
			<-begun
			_, err := t.Memo(ctx, "quick", "", func(context.Context) (pregel.Value, error) { return pregel.Value("1"), nil })
			return err
		}))
		began := time.Now()
		out, err := attemptOf(t, g, Env{Journal: &smallJournal{mustJournal(t, nil), 0}})
		if err != nil || !out.Yielded || time.Since(began) != yieldPatience {
			t.Errorf("after %v: %+v, %v", time.Since(began), out, err)
		}
	})
}

// TestAYieldIsNoAttempt: the policy's count goes on, what was streamed is void, and a suspicion stays.
func TestAYieldIsNoAttempt(t *testing.T) {
	var infos []Info
	failures := 0
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		infos = append(infos, t.Info())
		if err := t.Emit(pregel.Value("1")); err != nil {
			return err
		}
		if t.Info().Attempt == 1 {
			failures++
			return errors.New("not yet")
		}
		_, err := t.Memo(ctx, "a", "", func(context.Context) (pregel.Value, error) { return pregel.Value("1"), nil })
		return err
	}))
	node := g.Nodes["pay"]
	node.Retry = []graphadapter.RetryPolicy{{InitialInterval: -1, NoJitter: true, MaxAttempts: 2}}
	g.Nodes["pay"] = node
	task := payTask()
	out, _ := RunTask(t.Context(), g, task, Env{Thread: "r-7", Suspect: true, Journal: &smallJournal{mustJournal(t, nil), 0}})
	if !out.Yielded {
		t.Fatalf("the outcome is %+v", out)
	}
	task.Ledger = out.Ledger
	out, _ = RunTask(t.Context(), g, task, Env{Thread: "r-7"})
	if out.Error != nil || failures != 1 || len(infos) != 3 || infos[2].Attempt != 2 || !infos[2].Suspect {
		t.Errorf("%d failures, executions %+v, %+v", failures, infos, out.Error)
	}
	// The first attempt's, a reset, and the second's once.
	if len(out.Emitted) != 3 || out.Emitted[1].Kind != pregel.EmissionReset || out.Emitted[1].Attempt != 2 {
		t.Errorf("emitted %+v", out.Emitted)
	}
}

// TestACalledGraphIsGivenBackWithItsTask and goes on where it stood.
func TestACalledGraphIsGivenBackWithItsTask(t *testing.T) {
	b := &bank{}
	var receipt string
	inner := oneNode(payOnce(&receipt), b.effect(ledger.TargetNone))
	runs := 0
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		runs++
		_, err := InvokeNested(ctx, inner, pregel.Value(`{"amount":1}`))
		return err
	}))
	_, executions := untilDone(t, g, 1)
	if len(b.writes) != 1 || receipt == "" || executions < 2 || runs != executions {
		t.Errorf("%d writes, receipt %q, %d executions", len(b.writes), receipt, executions)
	}
}
