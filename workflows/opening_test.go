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
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/history"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// relaxedModes are those in which a segment begins within a workflow task.
func relaxedModes() map[string]protocol.GraphInput {
	return map[string]protocol.GraphInput{"async": fusedModes["async"], "exit": fusedModes["exit"]}
}

// counts are what a run's history has of its segments.
type counts struct{ tasks, openings, throughs, activities int }

func countsOf(h *historypb.History) (c counts) {
	for _, e := range h.Events {
		if e.GetWorkflowTaskCompletedEventAttributes() != nil {
			c.tasks++
		}
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == segment.SegmentActivity {
			c.activities++
		}
		kind, _ := history.Local(converter.GetDefaultDataConverter(), e)
		if kind == segment.OpeningActivity {
			c.openings++
			if slices.ContainsFunc(returned(e), isSegments) {
				c.throughs++
			}
		}
	}
	return c
}

// TestAShortRunIsOneWorkflowTask, and each answer is one more.
func TestAShortRunIsOneWorkflowTask(t *testing.T) {
	for mode, in := range relaxedModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(chainGraph(), asksOnce())
			in.Graph, in.Input = "chain", input(`{}`)
			inTime(t, func() bool {
				run := r.start(testserver.Queue(t), in)
				r.finished(run)
				got, want := countsOf(r.history(run.GetID())), (counts{1, 1, 1, 0})
				if got != want && got.activities == 0 {
					t.Errorf("a run of three supersteps took %+v, want %+v", got, want)
				}
				return got.activities == 0
			})
		})
	}
}

// inTime repeats what the half second of an opening has to be enough for: it says whether that was so. On a busy machine it is for one
// of several only.
func inTime(t *testing.T, try func() bool) {
	t.Helper()
	for range 40 {
		if try() || t.Failed() {
			return
		}
	}
	t.Error("no opening was through in its time")
}

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
			if got, want := countsOf(r.history(run.GetID())), (counts{2, 1, 0, 1}); got != want {
				t.Errorf("it took %+v, want %+v", got, want)
			}
		})
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

// TestNothingIsCalledInAnOpening: when a memoised call begins the segment is in its activity, which counts lost workers.
func TestNothingIsCalledInAnOpening(t *testing.T) {
	for mode, in := range relaxedModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			g, ran, called, under := chainGraph(), &atomic.Int32{}, &atomic.Int32{}, &atomic.Int32{}
			thread := testserver.Queue(t)
			g.Nodes["b"] = counting(ran, "b", func(ctx context.Context) error {
				task, ok := taskrun.TaskFrom(ctx)
				if !ok {
					return errors.New("the node has no task")
				}
				_, err := task.Memo(ctx, "call", "", func(context.Context) (pregel.Value, error) {
					called.Add(1)
					described, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
					under.Store(int32(len(described.GetPendingActivities())))
					return pregel.Value(`1`), err
				})
				return err
			})
			r.work(g)
			in.Graph, in.Input = "chain", input(`{}`)
			r.finished(r.start(thread, in))
			if ran.Load() != 1 || called.Load() != 1 || under.Load() != 1 {
				t.Errorf("the node ran %d times, made %d calls, and %d activities were under way then; want one each", ran.Load(), called.Load(), under.Load())
			}
		})
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
