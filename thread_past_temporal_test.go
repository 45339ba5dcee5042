package superstep_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/internal/testserver"
)

// server is a task queue whose worker can be stopped and started again.
type server struct {
	*superstep.Client
	t        *testing.T
	temporal client.Client
	queue    string
}

func newServer(t *testing.T) *server {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: noLog{}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	s := &server{t: t, temporal: c, queue: testserver.Queue(t)}
	s.Client, err = superstep.NewClient(c, superstep.ClientConfig{TaskQueue: s.queue})
	require.NoError(t, err)
	return s
}

// work runs a worker until stop is called, or the test ends.
func (s *server) work(graphs ...superstep.Runnable) (stop func()) {
	s.t.Helper()
	return s.workWith(superstep.WorkerConfig{Graphs: graphs})
}

// workWith is work with settings.
func (s *server) workWith(cfg superstep.WorkerConfig) (stop func()) {
	s.t.Helper()
	ready, ended := make(chan struct{}), make(chan error, 1)
	cfg.TaskQueue, cfg.OnReady = s.queue, func() { close(ready) }
	cfg.Options.WorkerStopTimeout = 5 * time.Second
	w, err := superstep.NewWorker(s.temporal, cfg)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(s.t, <-ended)
	})
	s.t.Cleanup(stop)
	<-ready
	return stop
}

// fateful is a graph whose thread fails or asks as its log says.
func fateful(broken *atomic.Bool) *superstep.Graph[counter] {
	g := superstep.NewStateGraph[counter]("fateful")
	g.AddNode("a", appending("a"))
	g.AddNode("b", func(ctx context.Context, s counter) (counter, error) {
		switch log := s.Log.Get(); {
		case log[0] == "fail" && broken.Load():
			return s, errors.New("broken")
		case log[0] == "ask":
			return asking("b")(ctx, s)
		}
		return appending("b")(ctx, s)
	})
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	return g.MustCompile()
}

// seen is all that can be read of a thread.
type seen struct {
	now     superstep.StateView
	history []superstep.CheckpointView
	at      []superstep.StateView
}

func (s *server) look(thread string) seen {
	s.t.Helper()
	var out seen
	var err error
	out.now, err = s.StateOf(s.t.Context(), superstep.StateRequest{Thread: thread, Subgraphs: true})
	require.NoError(s.t, err)
	out.history, err = s.HistoryOf(s.t.Context(), superstep.HistoryRequest{Thread: thread, Values: true})
	require.NoError(s.t, err)
	for _, c := range out.history {
		view, err := s.StateOf(s.t.Context(), superstep.StateRequest{Thread: thread, Checkpoint: c.Checkpoint})
		require.NoError(s.t, err)
		out.at = append(out.at, view)
	}
	return out
}

// TestThePastNeedsNoWorker: what can be read while a worker runs can be read by another process without any, of threads
// that wait, finished, failed, were cancelled or terminated; and a worker that comes later goes on with them.
func TestThePastNeedsNoWorker(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var broken atomic.Bool
	broken.Store(true)
	g := fateful(&broken)
	stop := s.work(g)
	thread := func(kind string) *superstep.Thread[counter] { return g.Thread(s.Client, s.queue+"-"+kind) }
	_, err := thread("fail").Invoke(t.Context(), wrote("fail"))
	require.Error(t, err)
	for _, kind := range []string{"ask", "cancel", "terminate"} {
		invoke(t, thread(kind), wrote("ask"))
	}
	for range 2 {
		invoke(t, thread("finish"), wrote("finish"))
	}
	require.NoError(t, thread("cancel").Cancel(t.Context(), "no need"))
	require.NoError(t, s.temporal.TerminateWorkflow(t.Context(), thread("terminate").ID(), "", "by hand"))

	kinds := map[string]superstep.Status{"fail": superstep.StatusFailed, "ask": superstep.StatusWaiting,
		"cancel": superstep.StatusCancelled, "terminate": superstep.StatusTerminated, "finish": superstep.StatusFinished}
	before := map[string]seen{}
	for kind, status := range kinds {
		before[kind] = s.look(thread(kind).ID())
		assert.Equal(t, status, before[kind].now.Status, kind)
		assert.Len(t, before[kind].history, map[bool]int{true: 8, false: 3}[kind == "finish"], kind)
	}
	stop()
	for kind := range kinds {
		assert.Equal(t, before[kind], s.look(thread(kind).ID()), kind)
	}

	s.work(g)
	broken.Store(false)
	got := invoke(t, thread("fail"), nil)
	assert.Equal(t, []string{"fail", "a", "b"}, got.Output.Log.Get())
	for _, kind := range []string{"ask", "cancel", "terminate"} {
		th := thread(kind)
		state, err := th.Update(t.Context(), wrote("by hand"), superstep.AsNode("b"))
		require.NoError(t, err, kind)
		assert.Equal(t, []string{"ask", "a", "by hand"}, state.State.Log.Get(), kind)
		afterA := atStep(t, th, 1)
		th, err = th.Fork(t.Context(), afterA.Checkpoint, "")
		require.NoError(t, err, kind)
		got, err := th.Wait(t.Context())
		require.NoError(t, err, kind)
		assert.Equal(t, superstep.StatusWaiting, got.Status, kind)
		got, err = th.Resume(t.Context(), true)
		require.NoError(t, err, kind)
		assert.Equal(t, []string{"ask", "a", "b true"}, got.Output.Log.Get(), kind)
	}
}

// TestForksAtOnce: one of several clients that continue a thread wins, the others are told, and every branch is whole.
func TestForksAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	g := chain("raced", "a", "b", "c").MustCompile()
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	invoke(t, th, counter{})
	before := historyOf(t, th)
	afterA := atStep(t, th, 1)
	const clients = 5
	refused := make(chan error, clients)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			_, err := th.Fork(t.Context(), afterA.Checkpoint, "")
			refused <- err
		})
	}
	all.Wait()
	close(refused)
	won := 0
	for err := range refused {
		if err == nil {
			won++
			continue
		}
		assert.ErrorIs(t, err, superstep.ErrRunning)
	}
	assert.Positive(t, won)
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
	history := historyOf(t, th)
	assert.Len(t, history, len(before)+3*won, "a fork, b and c for each that won")
	distinct := map[string]bool{}
	for _, c := range history {
		distinct[c.Checkpoint] = true
	}
	assert.Len(t, distinct, len(history))
}

// TestUpdatesAtOnce: every update that was accepted is there, once.
func TestUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	g := chain("crowded", "a", "b").MustCompile(superstep.WithInterruptBefore("b"))
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	invoke(t, th, counter{})
	var accepted sync.Map
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			word := fmt.Sprint("update ", i)
			if _, err := th.Update(t.Context(), wrote(word), superstep.AsNode("a")); err == nil {
				accepted.Store(word, true)
			} else {
				assert.ErrorIs(t, err, superstep.ErrRunning)
			}
		})
	}
	all.Wait()
	got := logOf(t, th)
	require.Equal(t, "a", got[0])
	for _, word := range got[1:] {
		_, ok := accepted.LoadAndDelete(word)
		assert.True(t, ok, "%s was not accepted, or is there twice", word)
	}
	accepted.Range(func(word, _ any) bool { t.Errorf("%v was accepted and lost", word); return true })
}
