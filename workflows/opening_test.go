package workflows_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/history"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestASegmentGoesOnInItsActivity: a node that takes longer than the opening, deaf to its context, runs once, and so does
// what ran before it.
func TestASegmentGoesOnInItsActivity(t *testing.T) {
	for mode, in := range relaxedModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			g, first, long := chainGraph(), &atomic.Int32{}, &atomic.Int32{}
			release := make(chan struct{})
			g.Nodes["a"] = counting(first, "a", nil)
			g.Nodes["b"] = counting(long, "b", func(context.Context) error { <-release; return nil })
			r.work(g)
			in.Graph, in.Input = "chain", input(`{}`)
			run := r.start(testserver.Queue(t), in)
			r.pending(run.GetID(), "the segment's activity", func(attempts []int32) bool { return slices.Equal(attempts, []int32{1}) })
			time.AfterFunc(steady+time.Second, func() { close(release) }) // longer than a lease that nobody renews
			if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
				t.Errorf("it ended with %s", log)
			}
			if first.Load() != 1 || long.Load() != 1 {
				t.Errorf("the nodes ran %d and %d times, want once", first.Load(), long.Load())
			}
			h := r.history(run.GetID())
			if got, want := countsOf(h), (counts{2, 1, 0, 1}); got != want {
				t.Fatalf("it took %+v, want %+v", got, want)
			}
			wantHandedOver(t, h)
		})
	}
}

// wantHandedOver wants a run's only opening to have lasted half a second, and its activity to be scheduled as the same workflow task
// completes: there is no moment at which the history tells of an opening that nothing takes over.
func wantHandedOver(t *testing.T, h *historypb.History) {
	t.Helper()
	const least = 450 * time.Millisecond // by the server's clock, of which the worker's may differ a little
	var opened, scheduled *historypb.HistoryEvent
	for _, e := range h.Events {
		if kind, _ := history.Local(converter.GetDefaultDataConverter(), e); kind == segment.OpeningActivity {
			opened = e
		}
		if e.GetActivityTaskScheduledEventAttributes() != nil {
			scheduled = e
		}
	}
	within := opened.GetMarkerRecordedEventAttributes().GetWorkflowTaskCompletedEventId()
	if by := scheduled.GetActivityTaskScheduledEventAttributes().GetWorkflowTaskCompletedEventId(); by != within {
		t.Fatalf("the opening ended with the workflow task of event %d, and the activity was scheduled by that of event %d", within, by)
	}
	started := h.Events[h.Events[within-1].GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()-1]
	if took := scheduled.GetEventTime().AsTime().Sub(started.GetEventTime().AsTime()); took < least {
		t.Errorf("the opening had %v until its activity was scheduled, want at least %v", took, least)
	}
}

// counting is a node that counts how often it runs, and writes its name.
func counting(ran *atomic.Int32, name string, do func(context.Context) error) graphadapter.Node {
	return graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		ran.Add(1)
		if do != nil {
			if err := do(ctx); err != nil {
				return pregel.Command{}, err
			}
		}
		return writes("log", []string{name}), nil
	}}
}

// TestNothingIsCalledInAnOpening: when a memoised call or an effect begins the segment is in its activity, which counts lost workers. So it
// is when an effect asks whether it is there already.
func TestNothingIsCalledInAnOpening(t *testing.T) {
	type outside func() (pregel.Value, error)
	effect := func(o graphadapter.CallOptions) func(context.Context, *taskrun.TaskRun, outside) (pregel.Value, error) {
		return func(ctx context.Context, task *taskrun.TaskRun, _ outside) (pregel.Value, error) {
			return task.Effect(ctx, "pay", pregel.Value(`1`), o)
		}
	}
	calls := map[string]struct {
		make       func(context.Context, *taskrun.TaskRun, outside) (pregel.Value, error)
		ran, times int32 // how often the node runs, and calls the outside
	}{
		"a memoised call": {func(ctx context.Context, task *taskrun.TaskRun, call outside) (pregel.Value, error) {
			return task.Memo(ctx, "call", "", func(context.Context) (pregel.Value, error) { return call() })
		}, 1, 1},
		"an effect":             {effect(graphadapter.CallOptions{}), 1, 1},
		"an effect of a thread": {effect(graphadapter.CallOptions{Key: "one", ThreadWide: true}), 2, 2}, // it is claimed, and sought, first
	}
	for mode, in := range relaxedModes() {
		for name, c := range calls {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				g, ran, called, under := chainGraph(), &atomic.Int32{}, &atomic.Int32{}, &atomic.Int32{}
				thread := testserver.Queue(t)
				call := func() (pregel.Value, error) {
					called.Add(1)
					described, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
					under.Add(int32(len(described.GetPendingActivities())))
					return pregel.Value(`1`), err
				}
				g.Effects = map[string]graphadapter.Effect{"pay": {Name: "pay", Target: ledger.TargetKeyed,
					Do: func(context.Context, string, pregel.Value) (pregel.Value, error) { return call() },
					Lookup: func(context.Context, string, pregel.Value) (graphadapter.Finding, error) {
						_, err := call()
						return graphadapter.Finding{Status: ledger.FindingNotFound}, err
					}}}
				g.Nodes["b"] = counting(ran, "b", func(ctx context.Context) error {
					task, ok := taskrun.TaskFrom(ctx)
					if !ok {
						return errors.New("the node has no task")
					}
					_, err := c.make(ctx, task, call)
					return err
				})
				r.work(g)
				in.Graph, in.Input = "chain", input(`{}`)
				r.finished(r.start(thread, in))
				if ran.Load() != c.ran || called.Load() != c.times || under.Load() != c.times {
					t.Errorf("the node ran %d times, made %d calls, and %d activities were under way then; want %d, and one activity for each of %d calls",
						ran.Load(), called.Load(), under.Load(), c.ran, c.times)
				}
				if got, want := countsOf(r.history(thread)), (counts{2, 1, 0, 1}); got != want {
					t.Errorf("it took %+v, want %+v", got, want)
				}
			})
		}
	}
}

// listeners take what nodes emit.
type listeners struct{ heard atomic.Int32 }

func (l *listeners) Publish(context.Context, graphadapter.LiveEmission) error {
	l.heard.Add(1)
	return nil
}

func (*listeners) Ended(context.Context, graphadapter.LiveTask) error { return nil }

// TestWhatIsEmittedEndsAnOpening: readers learn of the task at once, and not when the opening's half second is over. One of several
// runs shows that, however busy the machine is.
func TestWhatIsEmittedEndsAnOpening(t *testing.T) {
	const soon = 400 * time.Millisecond
	for mode, in := range relaxedModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r, live := newRig(t), &listeners{}
			r.live = live
			g, ran := chainGraph(), &atomic.Int32{}
			emitted, left := make(chan time.Time), make(chan struct{})
			g.Nodes["a"] = counting(ran, "a", func(ctx context.Context) error {
				task, _ := taskrun.TaskFrom(ctx)
				err := task.Emit(pregel.Value(`"word"`))
				emitted <- time.Now()
				<-left
				return err
			})
			r.work(g)
			in.Graph, in.Input = "chain", input(`{}`)
			for tries := int32(1); ; tries++ {
				run := r.start(testserver.Queue(t), in)
				at := <-emitted
				r.pending(run.GetID(), "the segment's activity", func(attempts []int32) bool { return slices.Equal(attempts, []int32{1}) })
				took := time.Since(at)
				left <- struct{}{}
				r.finished(run)
				if got, want := countsOf(r.history(run.GetID())), (counts{2, 1, 0, 1}); got != want || ran.Load() != tries || live.heard.Load() != tries {
					t.Fatalf("it took %+v, want %+v; the node ran %d times, and %d emissions were heard, of %d runs", got, want, ran.Load(), live.heard.Load(), tries)
				}
				if took < soon {
					return
				}
				if tries == 40 {
					t.Fatalf("the history told of the task %s after it had emitted", took)
				}
			}
		})
	}
}

// TestAWorkerLostInAnOpening: the next worker does not open the segment again, so a node that takes its worker along is
// counted.
func TestAWorkerLostInAnOpening(t *testing.T) {
	for mode, in := range relaxedModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r, gone := newRig(t), newRig(t)
			gone.queue = r.queue
			g, ran, began, release := chainGraph(), &atomic.Int32{}, make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(release) })
			g.Nodes["b"] = counting(ran, "b", func(context.Context) error {
				if ran.Load() == 1 {
					close(began)
					<-release
				}
				return nil
			})
			stop := gone.workAs(g, worker.Options{WorkerStopTimeout: time.Millisecond})
			in.Graph, in.Input = "chain", input(`{}`)
			run := r.start(testserver.Queue(t), in)
			<-began
			gone.client.Close() // the workflow task is lost with the worker
			stop()
			r.work(g)
			if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
				t.Errorf("it ended with %s", log)
			}
			if got := countsOf(r.history(run.GetID())); got.throughs != 0 || got.activities != 1 {
				t.Errorf("behind the lost worker it took %+v", got)
			}
		})
	}
}

// TestASegmentThatAnotherWorkerTakes: where the activity does not come to the worker that opened the segment, what runs there
// ends, and counts for nothing.
func TestASegmentThatAnotherWorkerTakes(t *testing.T) {
	for mode, in := range relaxedModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			inTime(t, func() bool { return takenByAnother(t, in) })
		})
	}
}

// takenByAnother reports whether the opening came to its second superstep.
func takenByAnother(t *testing.T, in protocol.GraphInput) bool {
	r := newRig(t)
	g, first, ran, why := chainGraph(), &atomic.Int32{}, &atomic.Int32{}, make(chan error, 1)
	g.Nodes["a"] = counting(first, "a", nil)
	g.Nodes["b"] = counting(ran, "b", func(ctx context.Context) error {
		if ran.Load() > 1 {
			return nil
		}
		<-ctx.Done()
		why <- context.Cause(ctx)
		return nil
	})
	stop := r.workAs(g, worker.Options{LocalActivityWorkerOnly: true})
	in.Graph, in.Input = "chain", input(`{}`)
	run := r.start(testserver.Queue(t), in)
	r.pending(run.GetID(), "the segment's activity", func(attempts []int32) bool { return len(attempts) == 1 })
	if ran.Load() == 0 { // no superstep begins any more in an opening that is over
		if err := r.client.TerminateWorkflow(r.ctx, run.GetID(), run.GetRunID(), "too slow"); err != nil {
			t.Fatal(err)
		}
		stop()
		return false
	}
	r.workAs(g, worker.Options{DisableWorkflowWorker: true})
	if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
		t.Errorf("it ended with %s", log)
	}
	if cause := <-why; !errors.Is(cause, graphadapter.ErrFenced) {
		t.Errorf("the node that nobody waits for ended because of %v", cause)
	}
	if first.Load() != 2 || ran.Load() != 2 {
		t.Errorf("the nodes ran %d and %d times, want twice", first.Load(), ran.Load())
	}
	return true
}
