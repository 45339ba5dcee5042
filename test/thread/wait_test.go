package thread_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// counter counts the calls of a connection by method.
type counter struct {
	mu    sync.Mutex
	by    map[string]int
	since time.Time     // when what is counted now began
	took  time.Duration // how long what was taken last took
}

func (c *counter) count(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c.mu.Lock()
	c.by[path.Base(method)]++
	c.mu.Unlock()
	return invoke(ctx, method, req, reply, cc, opts...)
}

// take returns what was counted, and begins anew.
func (c *counter) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.by
	c.by, c.took, c.since = map[string]int{}, time.Since(c.since), time.Now()
	return all
}

// callTime is less than one call waits for what an update does: then others follow.
const callTime = 9 * time.Second

// same holds what was taken last against the calls that it takes where each is answered in its time. Where some were not, as on a busy
// machine, there are more.
func (c *counter) same(t *testing.T, want, made map[string]int) {
	t.Helper()
	if c.took < callTime {
		assert.Equal(t, want, made)
		return
	}
	t.Logf("in %v it made the calls %v", c.took, made)
	for method, n := range want {
		assert.GreaterOrEqual(t, made[method], n, method)
	}
}

// TestAWaitLooksAtNoHistory: a run of many supersteps, an activity each, tells itself when it asks and when it ends.
func TestAWaitLooksAtNoHistory(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("long")
	before := superstep.Start
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		b.AddNode(name, func(context.Context, rig.Counter) (rig.Counter, error) { return rig.Counter{}, nil })
		b.AddEdge(before, name)
		before = name
	}
	b.AddNode("ask", rig.Asking("ask"))
	b.AddEdge(before, "ask")
	g := b.MustCompile()
	work := rig.NewServer(t)
	work.Work(g)
	counted := &counter{by: map[string]int{}}
	s := rig.NewServerBy(t, grpc.WithChainUnaryInterceptor(counted.count))
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: work.Queue})
	require.NoError(t, err)

	view, err := c.Start(t.Context(), thread.StartRequest{Graph: "long", Input: []byte(`{}`)})
	require.NoError(t, err)
	t.Log("start:", counted.take())
	waits, err := c.Wait(t.Context(), view.Thread)
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, waits.Status)
	require.Len(t, waits.Questions, 1)
	made := counted.take()
	counted.same(t, map[string]int{"UpdateWorkflowExecution": 1}, made)

	_, err = c.Resume(t.Context(), thread.ResumeRequest{Thread: view.Thread, Value: []byte(`true`)})
	require.NoError(t, err)
	t.Log("resume:", counted.take())
	ended, err := c.Wait(t.Context(), view.Thread)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, ended.Status)
	made = counted.take()
	delete(made, "DescribeNamespace")       // once
	delete(made, "UpdateWorkflowExecution") // none when it had ended
	if counted.took < callTime {
		assert.LessOrEqual(t, made["GetWorkflowExecutionHistory"], 1)
		assert.LessOrEqual(t, made["DescribeWorkflowExecution"], 1)
	}
}

// TestATurnIsOneUpdate: a conversation whose run is kept open takes a turn and tells when it rests by one call, also where the
// run is continued as a new one between two turns.
func TestATurnIsOneUpdate(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]*rig.Server{
		"one run": rig.NewServer(t), "many runs": rig.NewServerThatContinues(t, protocol.ContinueAt{Events: 20}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := superstep.NewStateGraph[rig.Counter]("turns")
			b.AddNode("turn", rig.Appending("said"))
			b.AddEdge(superstep.Start, "turn")
			g := b.MustCompile()
			work.Work(g)
			first := g.Thread(work.Client, work.Queue)
			_, err := first.Invoke(t.Context(), rig.Counter{}, superstep.WithKeepOpen(0))
			require.NoError(t, err)

			counted := &counter{by: map[string]int{}}
			s := rig.NewServerBy(t, grpc.WithChainUnaryInterceptor(counted.count))
			c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: work.Queue})
			require.NoError(t, err)
			th := g.Thread(c, first.ID())
			for n := 2; n <= 9; n++ {
				counted.take()
				r, err := th.Invoke(t.Context(), rig.Counter{})
				require.NoError(t, err)
				assert.Equal(t, thread.StatusFinished, r.Status)
				assert.Len(t, r.Output.Log.Get(), n)
				if made := counted.take(); name == "one run" && n > 2 {
					counted.same(t, map[string]int{"UpdateWorkflowExecution": 1}, made)
				}
			}
		})
	}
}

// TestATurnBringsWhatIsNew: what a turn of a conversation brings its caller, and what it stores, does not grow with what was said
// before. The caller has the whole output all the same, also what others have said meanwhile, and when the list was replaced.
func TestATurnBringsWhatIsNew(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("talk")
	b.AddNode("turn", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		log := s.Log.Get()
		if last := log[len(log)-1]; last == "begin anew" {
			s.Log.Overwrite([]string{strings.Repeat("anew <&> ", 500)})
			return s, nil
		}
		return rig.Wrote("an answer <&> with \u2028"), nil
	})
	b.AddEdge(superstep.Start, "turn")
	g := b.MustCompile()
	work := rig.NewServer(t)
	work.Work(g)
	c, calls := counted(t, work)
	one, other := g.Thread(c, work.Queue), g.Thread(work.Client, work.Queue)
	said := []string(nil)
	say := func(by *superstep.Thread[rig.Counter], text string) map[string]int {
		calls.take()
		r, err := by.Invoke(t.Context(), rig.Wrote(text), superstep.WithKeepOpen(0), superstep.WithDurability(superstep.DurabilityExit))
		require.NoError(t, err)
		if said = append(said, text, "an answer <&> with \u2028"); text == "begin anew" {
			said = []string{strings.Repeat("anew <&> ", 500)}
		}
		require.Equal(t, said, r.Output.Log.Get())
		return calls.take()
	}
	for n := range 8 { // until the state is too long for a reply
		say(one, fmt.Sprint(n)+strings.Repeat(" long", 1<<10))
	}
	before := historyBytes(work, work.Queue)
	for n := range 4 {
		calls.same(t, map[string]int{"UpdateWorkflowExecution": 1}, say(one, fmt.Sprint("short ", n)))
	}
	assert.Less(t, historyBytes(work, work.Queue)-before, int64(4*6<<10))
	say(other, "<in between>")
	calls.same(t, map[string]int{"UpdateWorkflowExecution": 1}, say(one, "<short>"))
	say(one, "begin anew")
	calls.same(t, map[string]int{"UpdateWorkflowExecution": 1}, say(one, "last"))
}

// TestAStartAndAWaitAreTwoCalls of a client that knows the graph and has asked about it before, with a Thread and with a Client. A
// thread that has begun before is found out by the server, and goes on.
func TestAStartAndAWaitAreTwoCalls(t *testing.T) {
	t.Parallel()
	work := rig.NewServer(t)
	g := turns()
	work.Work(g)
	calls := &counter{by: map[string]int{}}
	s := rig.NewServerBy(t, grpc.WithChainUnaryInterceptor(calls.count))
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: work.Queue, Graphs: []superstep.Runnable{g}})
	require.NoError(t, err)
	start := func(id string, word string) {
		t.Helper()
		_, err := c.Start(t.Context(), thread.StartRequest{Graph: "turns", Thread: id, Input: fmt.Appendf(nil, `{"log":[%q]}`, word)})
		require.NoError(t, err)
	}
	once := map[string]int{"StartWorkflowExecution": 1}
	start(work.Queue+"-first", "ask")
	_, err = c.Wait(t.Context(), work.Queue+"-first")
	require.NoError(t, err)
	t.Log("the first of a client:", calls.take())

	start(work.Queue, "ask")
	calls.same(t, once, calls.take())
	waits, err := c.Wait(t.Context(), work.Queue)
	require.NoError(t, err)
	calls.same(t, map[string]int{"UpdateWorkflowExecution": 1}, calls.take())
	assert.Equal(t, thread.StatusWaiting, waits.Status)

	th := g.Thread(c, work.Queue+"-typed")
	require.NoError(t, th.Start(t.Context(), rig.Wrote("ask")))
	calls.same(t, once, calls.take())
	r, err := th.Wait(t.Context())
	require.NoError(t, err)
	calls.same(t, map[string]int{"UpdateWorkflowExecution": 1}, calls.take())
	assert.Equal(t, thread.StatusWaiting, r.Status)

	// An open run is given the input, a run that is over is followed by another one.
	for _, want := range [][]string{{"ask", "hello"}, {"ask", "hello", "again"}} {
		start(work.Queue, want[len(want)-1])
		ended, err := c.Wait(t.Context(), work.Queue)
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, ended.Status)
		assert.Equal(t, want, rig.LogOf(t, g.Thread(work.Client, work.Queue)))
	}
	_, err = c.Start(t.Context(), thread.StartRequest{Graph: "turns", Thread: work.Queue, NewThread: true, Input: []byte(`{}`)})
	require.ErrorIs(t, err, thread.ErrBadInput)

	// A client that has seen nothing of the thread refuses as one that has looked.
	stranger, err := superstep.NewClient(work.Temporal, superstep.ClientConfig{TaskQueue: work.Queue + "-nobody"})
	require.NoError(t, err)
	_, err = stranger.Start(t.Context(), thread.StartRequest{Graph: "another", Thread: work.Queue + "-typed", Input: []byte(`{}`)})
	require.ErrorIs(t, err, thread.ErrBadInput)
	require.ErrorContains(t, err, "belongs to graph")
	_, err = stranger.Start(t.Context(), thread.StartRequest{Graph: "turns", Thread: work.Queue + "-typed", Input: []byte(`{"log":["hello"]}`)})
	require.NoError(t, err, "its run is of another queue, where a worker is")
}
