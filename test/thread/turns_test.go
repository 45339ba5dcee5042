package thread_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// turns is a graph that asks at each turn whose input says so, and notes the words that it is given.
func turns() *superstep.Graph[rig.Counter] {
	b := superstep.NewStateGraph[rig.Counter]("turns")
	b.AddNode("turn", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		if log := s.Log.Get(); log[len(log)-1] == "ask" {
			return rig.Asking("turn")(ctx, s)
		}
		return rig.Counter{}, nil
	})
	b.AddEdge(superstep.Start, "turn")
	return b.MustCompile()
}

// counted is a client of a server's task queue whose calls are counted.
func counted(t *testing.T, work *rig.Server) (*superstep.Client, *counter) {
	t.Helper()
	calls := &counter{by: map[string]int{}}
	s := rig.NewServerBy(t, grpc.WithChainUnaryInterceptor(calls.count))
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: work.Queue})
	require.NoError(t, err)
	return c, calls
}

// taking is a server with a worker of a graph, and a client that knows the worker, whose calls are counted from now on.
func taking(t *testing.T, g *superstep.Graph[rig.Counter]) (work *rig.Server, c *superstep.Client, calls *counter) {
	t.Helper()
	work = rig.NewServer(t)
	work.Work(g)
	c, calls = counted(t, work)
	_, err := g.Thread(c, work.Queue+"-first").Invoke(t.Context(), rig.Wrote("hello"))
	require.NoError(t, err)
	t.Log("the first call of a client:", calls.take())
	return work, c, calls
}

// runOf is a thread's newest run, and whether it is open.
func runOf(t *testing.T, s *rig.Server, threadID string) (id string, open bool) {
	t.Helper()
	described, err := s.Temporal.DescribeWorkflowExecution(t.Context(), threadID, "")
	require.NoError(t, err)
	info := described.GetWorkflowExecutionInfo()
	return info.GetExecution().GetRunId(), info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// TestACallerPaysForOneCall to begin a thread and wait until it rests, one to answer and one for each turn, once its client knows
// the workers. What it is told is what anybody would be shown.
func TestACallerPaysForOneCall(t *testing.T) {
	t.Parallel()
	g := turns()
	work, c, calls := taking(t, g)

	th := g.Thread(c, work.Queue)
	r, err := th.Invoke(t.Context(), rig.Wrote("ask"))
	require.NoError(t, err)
	calls.same(t, map[string]int{"ExecuteMultiOperation": 1}, calls.take())
	assert.Equal(t, thread.StatusWaiting, r.Status)
	require.Len(t, r.Questions, 1)

	shown, err := work.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, shown.Questions, r.Questions)

	r, err = th.Resume(t.Context(), true)
	require.NoError(t, err)
	made := calls.take()
	delete(made, "DescribeNamespace") // once
	calls.same(t, map[string]int{"UpdateWorkflowExecution": 1}, made)
	assert.Equal(t, thread.StatusFinished, r.Status)
	assert.Equal(t, []string{"ask", "turn true"}, r.Output.Log.Get())

	long := strings.Repeat("x", 20<<10) // more than a reply brings
	_, err = th.Invoke(t.Context(), rig.Wrote("again"))
	require.NoError(t, err)
	calls.same(t, map[string]int{"DescribeWorkflowExecution": 2, "GetWorkflowExecutionHistory": 1, "StartWorkflowExecution": 1,
		"UpdateWorkflowExecution": 1}, calls.take())
	_, err = th.Invoke(t.Context(), rig.Wrote("again"))
	require.NoError(t, err)
	calls.same(t, map[string]int{"UpdateWorkflowExecution": 1}, calls.take())
	r, err = th.Invoke(t.Context(), rig.Wrote(long))
	require.NoError(t, err)
	calls.same(t, map[string]int{"UpdateWorkflowExecution": 1, "QueryWorkflow": 1}, calls.take())
	assert.Equal(t, []string{"ask", "turn true", "again", "again", long}, r.Output.Log.Get())
	r, err = g.Thread(c, work.Queue+"-long").Invoke(t.Context(), rig.Wrote(long))
	require.NoError(t, err)
	calls.same(t, map[string]int{"ExecuteMultiOperation": 1}, calls.take())
	assert.Equal(t, []string{long}, r.Output.Log.Get())
}

// TestAProgramWithoutTheGraph has a worker check its input, and pays for one call beside that to begin and wait, and for one to answer
// and wait. How a run failed is in what it is told.
func TestAProgramWithoutTheGraph(t *testing.T) {
	t.Parallel()
	work, c, calls := taking(t, turns())
	saying := func(id, word string) thread.StartRequest {
		return thread.StartRequest{Graph: "turns", Thread: id, Input: fmt.Appendf(nil, `{"log":[%q]}`, word)}
	}
	view, err := c.Invoke(t.Context(), saying(work.Queue, "ask"))
	require.NoError(t, err)
	calls.same(t, map[string]int{"QueryWorkflow": 1, "ExecuteMultiOperation": 1}, calls.take())
	assert.Equal(t, thread.StatusWaiting, view.Status)
	shown, err := work.Show(t.Context(), work.Queue)
	require.NoError(t, err)
	assert.Equal(t, shown.Questions, view.Questions)

	view, err = c.Answer(t.Context(), thread.ResumeRequest{Thread: work.Queue, Value: []byte("true")})
	require.NoError(t, err)
	made := calls.take()
	delete(made, "DescribeNamespace") // once
	calls.same(t, map[string]int{"UpdateWorkflowExecution": 1}, made)
	assert.Equal(t, thread.StatusFinished, view.Status)
	assert.JSONEq(t, `["ask", "turn true"]`, string(view.Output["log"]))

	view, err = c.Invoke(t.Context(), saying("", strings.Repeat("x", 20<<10)))
	require.NoError(t, err)
	assert.NotEmpty(t, view.Thread)
	assert.Len(t, view.Output["log"], 20<<10+len(`[""]`))

	_, err = c.Invoke(t.Context(), thread.StartRequest{Graph: "turns", Thread: work.Queue + "-bad", Input: []byte(`{"log":7}`)})
	require.ErrorIs(t, err, thread.ErrBadInput)
	_, err = c.Show(t.Context(), work.Queue+"-bad")
	require.ErrorIs(t, err, thread.ErrNotFound)

	b := superstep.NewStateGraph[rig.Counter]("fails")
	b.AddNode("fail", func(context.Context, rig.Counter) (rig.Counter, error) { return rig.Counter{}, assert.AnError })
	b.AddEdge(superstep.Start, "fail")
	failing := rig.NewServer(t)
	failing.Work(b.MustCompile())
	view, err = failing.Invoke(t.Context(), thread.StartRequest{Graph: "fails", Thread: failing.Queue, Input: []byte(`{}`)})
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFailed, view.Status)
	assert.Contains(t, view.Failure.Message, assert.AnError.Error())
}

// TestAWaiterIsShownWhatEverybodyIs: the view that a wait returns is the one that the server's records give, of a run that has
// ended too.
func TestAWaiterIsShownWhatEverybodyIs(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	work.Work(turns())
	for word, status := range map[string]thread.Status{"ask": thread.StatusWaiting, "hello": thread.StatusFinished} {
		view, err := work.Start(t.Context(), thread.StartRequest{Graph: "turns", Thread: work.Queue + word, Input: fmt.Appendf(nil, `{"log":[%q]}`, word)})
		require.NoError(t, err)
		waited, err := work.Wait(t.Context(), view.Thread)
		require.NoError(t, err)
		require.Equal(t, status, waited.Status)
		shown, err := work.Show(t.Context(), view.Thread)
		require.NoError(t, err)
		assert.WithinDuration(t, shown.Started, waited.Started, time.Millisecond)
		assert.WithinDuration(t, shown.Closed, waited.Closed, time.Minute) // a workflow task apart
		assert.WithinDuration(t, shown.Expires, waited.Expires, time.Minute)
		waited.Started, waited.Closed, waited.Expires = shown.Started, shown.Closed, shown.Expires
		waited.Events, waited.HistoryBytes = shown.Events, shown.HistoryBytes // those of the reply itself are behind it
		assert.Equal(t, shown, waited)
	}
}

// TestALongInputIsSentOnce, and what comes of it is told in terms of it: a caller with a long list pays for one call too. A client that
// takes an open thread for a new one is asked for the input, and each turn counts once.
func TestALongInputIsSentOnce(t *testing.T) {
	t.Parallel()
	g := turns()
	work, c, calls := taking(t, g)

	long := make([]string, 4000)
	for i := range long {
		long[i] = fmt.Sprint("word ", i)
	}
	r, err := g.Thread(c, work.Queue).Invoke(t.Context(), rig.Wrote(long...))
	require.NoError(t, err)
	calls.same(t, map[string]int{"ExecuteMultiOperation": 1}, calls.take())
	assert.Equal(t, long, r.Output.Log.Get())
	_, err = g.Thread(c, work.Queue).Invoke(t.Context(), rig.Wrote("short"))
	require.NoError(t, err)

	another, _ := counted(t, work)
	r, err = g.Thread(another, work.Queue).Invoke(t.Context(), rig.Wrote(long...))
	require.NoError(t, err)
	want := slices.Concat(long, []string{"short"}, long)
	assert.Equal(t, want, r.Output.Log.Get())
	r, err = g.Thread(another, work.Queue).Invoke(t.Context(), rig.Wrote("ask", "<&>"))
	require.NoError(t, err)
	assert.Equal(t, append(want, "ask", "<&>"), r.Output.Log.Get())
	shown, err := work.Show(t.Context(), work.Queue)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, shown.Status)
}

// TestAThreadThatIsInvokedAgainStaysOpen: the first run of a thread ends, the second is kept open for turns, unless its caller says
// otherwise. Whatever becomes of the run, the thread goes on where it was.
func TestAThreadThatIsInvokedAgainStaysOpen(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	g := turns()
	work.Work(g)
	th := g.Thread(work.Client, work.Queue)
	var runs []string
	turn := func(word string, opts ...superstep.RunOption) (open bool) {
		t.Helper()
		r, err := th.Invoke(t.Context(), rig.Wrote(word), opts...)
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, r.Status)
		run, open := runOf(t, work, th.ID())
		runs = append(runs, run)
		return open
	}
	say := func(word string, stays bool, opts ...superstep.RunOption) {
		t.Helper()
		assert.Equal(t, stays, turn(word, opts...), word)
	}
	say("one", false)
	say("two", true)
	say("three", true)
	assert.Equal(t, runs[1], runs[2], "a turn began a run of its own")
	turn("four", superstep.WithKeepOpen(time.Millisecond))
	require.NoError(t, work.Temporal.GetWorkflow(t.Context(), th.ID(), "").Get(t.Context(), nil)) // idle
	say("five", false, superstep.WithKeepOpen(-1))
	say("six", true)
	assert.Len(t, slices.Compact(runs), 4)
	assert.Equal(t, []string{"one", "two", "three", "four", "five", "six"}, rig.LogOf(t, th))
}

// TestATurnThatMeetsTheRunsEnd is taken once, by the run that is about to end for want of input or by the next.
func TestATurnThatMeetsTheRunsEnd(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	g := turns()
	work.Work(g)
	th := g.Thread(work.Client, work.Queue)
	var want []string
	for n := range 60 {
		word := fmt.Sprint(n)
		r, err := th.Invoke(t.Context(), rig.Wrote(word), superstep.WithKeepOpen(time.Duration(1+n%12)*time.Millisecond))
		require.NoError(t, err)
		want = append(want, word)
		require.Equal(t, want, r.Output.Log.Get())
	}
}

// TestTurnsOfManyCallers: of several who give a thread a turn at once, or start a run and wait, those who are not refused are all in its
// state, each once, while the run is continued as a new one again and again, and where each turn has a run of its own.
func TestTurnsOfManyCallers(t *testing.T) {
	t.Parallel()
	continued := func(t *testing.T, at protocol.ContinueAt) {
		t.Parallel()
		work := rig.NewServerThatContinues(t, at)
		turnsOfManyCallers(t, work)
		assert.GreaterOrEqual(t, work.Continued(work.Queue), 2, "runs are not continued by their updates")
	}
	t.Run("where it rests", func(t *testing.T) { continued(t, protocol.ContinueAt{Updates: 4, Life: 1}) })
	t.Run("under way", func(t *testing.T) { continued(t, protocol.ContinueAt{Updates: 4, MostUpdates: 4, Life: 1}) })
	t.Run("runs of their own", func(t *testing.T) {
		t.Parallel()
		turnsOfManyCallers(t, rig.NewServer(t), superstep.WithKeepOpen(-1))
	})
}

func turnsOfManyCallers(t *testing.T, work *rig.Server, opts ...superstep.RunOption) {
	t.Helper()
	g := turns()
	work.Work(g)
	_, err := g.Thread(work.Client, work.Queue).Invoke(t.Context(), rig.Wrote("begin"), append([]superstep.RunOption{superstep.WithKeepOpen(0)}, opts...)...)
	require.NoError(t, err)
	give := func(th *superstep.Thread[rig.Counter], word string, starts bool) error {
		if !starts {
			_, err := th.Invoke(t.Context(), rig.Wrote(word), opts...)
			return err
		}
		err := th.Start(t.Context(), rig.Wrote(word), opts...)
		if err == nil {
			_, err = th.Wait(t.Context())
		}
		return err
	}
	var mu sync.Mutex
	taken := []string{"begin"}
	var all sync.WaitGroup
	for caller := range 3 {
		all.Go(func() {
			c, err := superstep.NewClient(work.Temporal, superstep.ClientConfig{TaskQueue: work.Queue})
			if !assert.NoError(t, err) {
				return
			}
			for n := 0; n < 6; {
				word := fmt.Sprintf("%d/%d", caller, n)
				err := give(g.Thread(c, work.Queue), word, caller == 2)
				if errors.Is(err, thread.ErrRunning) {
					continue
				}
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				taken = append(taken, word)
				mu.Unlock()
				n++
			}
		})
	}
	all.Wait()
	assert.ElementsMatch(t, taken, rig.LogOf(t, g.Thread(work.Client, work.Queue)))
}

// nothing is a message of the same type, for a reply that nobody hears.
func nothing(reply any) any { return proto.Clone(reply.(proto.Message)) }

// losing is a connection whose caller is gone once a call of a method has been sent.
type losing struct {
	method string
	gone   context.CancelFunc // nil while nobody is lost
}

func (l *losing) call(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if l.gone == nil || !strings.HasSuffix(method, l.method) {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	sent := context.WithoutCancel(ctx)
	go func() { _ = invoke(sent, method, req, nothing(reply), cc, opts...) }()
	l.gone()
	return ctx.Err()
}

// TestACallerThatIsLost between its call and the reply loses nothing, and nothing is done twice: the run has begun with the input,
// or has taken the turn or the answer.
func TestACallerThatIsLost(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	g := turns()
	work.Work(g)
	lost := &losing{}
	s := rig.NewServerBy(t, grpc.WithChainUnaryInterceptor(lost.call))
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: work.Queue})
	require.NoError(t, err)
	th := g.Thread(c, work.Queue)
	lose := func(method string, call func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		lost.method, lost.gone = method, cancel
		require.ErrorIs(t, call(ctx), context.Canceled)
		lost.gone = nil
	}
	seen := g.Thread(work.Client, work.Queue)
	until := func(status thread.Status, log ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			r, err := seen.Wait(t.Context())
			return err == nil && r.Status == status && slices.Equal(log, r.Output.Log.Get())
		}, 2*time.Minute, 10*time.Millisecond)
	}
	lose("ExecuteMultiOperation", func(ctx context.Context) error {
		_, err := th.Invoke(ctx, rig.Wrote("ask"), superstep.WithKeepOpen(0))
		return err
	})
	until(thread.StatusWaiting, "ask")
	lose("UpdateWorkflowExecution", func(ctx context.Context) error {
		_, err := th.Resume(ctx, true)
		return err
	})
	until(thread.StatusFinished, "ask", "turn true")
	lose("ExecuteMultiOperation", func(ctx context.Context) error {
		_, err := th.Invoke(ctx, rig.Wrote("hello"))
		return err
	})
	until(thread.StatusFinished, "ask", "turn true", "hello")
	_, err = th.Invoke(t.Context(), rig.Wrote("again")) // the client knows now that the run is open
	require.NoError(t, err)
	lose("UpdateWorkflowExecution", func(ctx context.Context) error {
		_, err := th.Invoke(ctx, rig.Wrote("bye"))
		return err
	})
	until(thread.StatusFinished, "ask", "turn true", "hello", "again", "bye")

	th, seen = g.Thread(c, work.Queue+"-over"), g.Thread(work.Client, work.Queue+"-over")
	_, err = th.Invoke(t.Context(), rig.Wrote("first")) // the client knows then that the thread's run is over
	require.NoError(t, err)
	lose("StartWorkflowExecution", func(ctx context.Context) error {
		_, err := th.Invoke(ctx, rig.Wrote("behind it"))
		return err
	})
	until(thread.StatusFinished, "first", "behind it")

	th, seen = g.Thread(c, work.Queue+"-begun"), g.Thread(work.Client, work.Queue+"-begun")
	_, err = th.Invoke(t.Context(), rig.Wrote("first"))
	require.NoError(t, err)
	lose("UpdateWorkflowExecution", func(ctx context.Context) error {
		_, err := th.Invoke(ctx, rig.Wrote("behind it"))
		return err
	})
	until(thread.StatusFinished, "first", "behind it")
}

// TestACallThatIsRepeated with its id, behind a run that is over, is done once: while its run is open, and when that is over too, however
// long its input is.
func TestACallThatIsRepeated(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	g := turns()
	work.Work(g)
	th := g.Thread(work.Client, work.Queue)
	_, err := th.Invoke(t.Context(), rig.Wrote("first"))
	require.NoError(t, err)
	for range 2 {
		view, err := work.Invoke(t.Context(), thread.StartRequest{ID: "ours", Graph: "turns", Thread: work.Queue, Input: []byte(`{"log":["ask"]}`)})
		require.NoError(t, err)
		assert.Equal(t, thread.StatusWaiting, view.Status)
	}
	_, err = th.Resume(t.Context(), true)
	require.NoError(t, err)
	_, err = work.Cancel(t.Context(), thread.CancelRequest{Thread: work.Queue})
	require.NoError(t, err)
	_, err = work.Wait(t.Context(), work.Queue)
	require.NoError(t, err)
	_, err = work.Invoke(t.Context(), thread.StartRequest{ID: "ours", Graph: "turns", Thread: work.Queue, Input: []byte(`{"log":["ask"]}`)})
	require.NoError(t, err)
	assert.Equal(t, []string{"first", "ask", "turn true"}, rig.LogOf(t, th))

	long := strings.Repeat("x", 20<<10)
	for range 2 {
		_, err = work.Invoke(t.Context(), thread.StartRequest{ID: "long", Graph: "turns", Thread: work.Queue, Input: fmt.Appendf(nil, `{"log":[%q]}`, long),
			IdleTimeout: -1})
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"first", "ask", "turn true", long}, rig.LogOf(t, th))
}

// TestACallThatIsRepeatedLate is done once also where another caller's turn has begun the thread's next run meanwhile: while that is open,
// when it is over, and by a start as well.
func TestACallThatIsRepeatedLate(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	g := turns()
	work.Work(g)
	th := g.Thread(work.Client, work.Queue)
	call := func(id string) thread.StartRequest {
		return thread.StartRequest{ID: id, Graph: "turns", Thread: work.Queue, Input: fmt.Appendf(nil, `{"log":[%q]}`, id)}
	}
	for _, ids := range [][]string{{"a", "b"}, {"a", "b", "c"}} { // a's run ends, b's stays open and takes c
		for _, id := range ids {
			v, err := work.Invoke(t.Context(), call(id))
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFinished, v.Status)
		}
		assert.Equal(t, ids, rig.LogOf(t, th))
	}
	_, err := work.Cancel(t.Context(), thread.CancelRequest{Thread: work.Queue})
	require.NoError(t, err)
	_, err = work.Wait(t.Context(), work.Queue)
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "c"} {
		_, err := work.Invoke(t.Context(), call(id))
		require.NoError(t, err)
		_, err = work.Start(t.Context(), call(id))
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "c"}, rig.LogOf(t, th), id)
	}
}

// TestAnInputThatOnlyTheWorkerRefuses: a program whose graph takes what the workers' does not is told so, and nothing is left of it.
func TestAnInputThatOnlyTheWorkerRefuses(t *testing.T) {
	t.Parallel()
	type older struct {
		N superstep.Value[string] `json:"n"`
	}
	work := rig.NewServer(t)
	g := turns()
	work.Work(g)
	b := superstep.NewStateGraph[older]("turns")
	b.AddNode("turn", func(_ context.Context, s older) (older, error) { return s, nil })
	b.AddEdge(superstep.Start, "turn")
	th := b.MustCompile().Thread(work.Client, work.Queue)
	for range 2 {
		_, err := th.Invoke(t.Context(), map[string]any{"n": "seven"})
		require.ErrorIs(t, err, thread.ErrBadInput)
		assert.ErrorContains(t, err, "n")
	}
	r, err := g.Thread(work.Client, work.Queue).Invoke(t.Context(), rig.Wrote("hello"))
	require.NoError(t, err)
	assert.Equal(t, []string{"hello"}, r.Output.Log.Get())
}

// TestALongTurn takes longer than one call waits: it is taken once, by a thread that begins and by one that goes on, also where
// nothing is heard of a call that waits for it.
func TestALongTurn(t *testing.T) {
	t.Parallel()
	slow := &late{method: "UpdateWorkflowExecution"}
	slow.left.Store(2)
	work := rig.NewServerBy(t, grpc.WithChainUnaryInterceptor(slow.call))
	b := superstep.NewStateGraph[rig.Counter]("long")
	b.AddNode("turn", func(ctx context.Context, _ rig.Counter) (rig.Counter, error) {
		select {
		case <-ctx.Done():
		case <-time.After(12 * time.Second):
		}
		return rig.Wrote("done"), ctx.Err()
	})
	b.AddEdge(superstep.Start, "turn")
	g := b.MustCompile()
	work.Work(g)
	th := g.Thread(work.Client, work.Queue)
	for n := range 2 {
		r, err := th.Invoke(t.Context(), rig.Wrote("turn"), superstep.WithKeepOpen(0))
		require.NoError(t, err)
		assert.Len(t, r.Output.Log.Get(), 2*(n+1))
	}
	assert.True(t, slow.lost.Load(), "nothing was late")
}
