package thread_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// shared is a server whose client and workers share a storage.
type shared struct {
	*rig.Server
	dir     string
	storage *storage.Storage
}

// newShared is a server with a storage in a directory of the test's own.
func newShared(t *testing.T, s *rig.Server) *shared {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "values")
	return withStorage(t, s, dir)
}

// withStorage is a server with what another process has of the storage in dir: nothing in memory.
func withStorage(t *testing.T, s *rig.Server, dir string) *shared {
	t.Helper()
	return withOptions(t, s, dir, storage.Options{CacheBytes: 1})
}

// withOptions is withStorage with other options.
func withOptions(t *testing.T, s *rig.Server, dir string, opts storage.Options) *shared {
	t.Helper()
	values, err := storage.Files(dir, opts)
	require.NoError(t, err)
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: s.Queue, Storage: values})
	require.NoError(t, err)
	return &shared{&rig.Server{T: t, Client: c, Temporal: s.Temporal, Queue: s.Queue}, dir, values}
}

// work runs a worker with the storage.
func (s *shared) work(graphs ...superstep.Runnable) (stop func()) {
	return s.WorkWith(superstep.WorkerConfig{Graphs: graphs, Storage: s.storage})
}

// objects are the files of the storage, and their bytes together.
func (s *shared) objects() (paths []string, bytes int64) {
	s.T.Helper()
	require.NoError(s.T, filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			paths, bytes = append(paths, path), bytes+info.Size()
		}
		return err
	}))
	return paths, bytes
}

// historyBytes is how large the history of a thread's newest run is.
func historyBytes(s *rig.Server, id string) int64 {
	s.T.Helper()
	d, err := s.Temporal.DescribeWorkflowExecution(s.T.Context(), id, "")
	require.NoError(s.T, err)
	return d.GetWorkflowExecutionInfo().GetHistorySizeBytes()
}

// said is a text of n bytes that does not compress to nothing, the same for the same seed.
func said(n int, seed uint64) string {
	from := rand.New(rand.NewPCG(seed, 7))
	out := make([]byte, 0, n+16)
	for len(out) < n {
		out = fmt.Appendf(out, "%016x", from.Uint64())
	}
	return string(out[:n])
}

// growing is a graph of which each superstep says 800 KB, as often as N says.
func growing(name string, opts ...superstep.CompileOption) *superstep.Graph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter](name)
	g.AddNode("say", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		s.Log.Append(said(800_000, uint64(len(s.Log.Get()))))
		s.N.Set(s.N.Get() - 1)
		return s, nil
	})
	g.AddConditionalEdges("say", func(_ context.Context, s rig.Counter) ([]superstep.Target, error) {
		if s.N.Get() > 0 {
			return superstep.To("say"), nil
		}
		return nil, nil
	}, "say")
	g.AddEdge(superstep.Start, "say")
	return g.MustCompile(opts...)
}

// TestAStateWithoutAWall: a state of several times what an event takes is left at a run's end, read from outside, updated, forked, and
// gone on from by the thread's next runs, in every mode; the history holds references.
func TestAStateWithoutAWall(t *testing.T) {
	t.Parallel()
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShared(t, rig.NewServer(t))
			g := growing("unwalled-"+name, opts...)
			s.work(g)
			th := g.Thread(s.Client, s.Queue)
			var in rig.Counter
			in.N.Set(5)
			check := func(got superstep.Result[rig.Counter], n int) {
				t.Helper()
				require.Len(t, got.Output.Log.Get(), n)
				for i, text := range got.Output.Log.Get() {
					require.Equal(t, said(800_000, uint64(i)), text)
				}
			}
			got, err := th.Invoke(t.Context(), in)
			require.NoError(t, err)
			check(got, 5)
			assert.Less(t, historyBytes(s.Server, th.ID()), int64(200_000))
			got, err = th.Invoke(t.Context(), in)
			require.NoError(t, err)
			check(got, 10)

			other := withStorage(t, s.Server, s.dir) // another process
			state, err := g.Thread(other.Client, th.ID()).State(t.Context())
			require.NoError(t, err)
			require.Len(t, state.State.Log.Get(), 10)
			_, bytes := s.objects()
			t.Logf("8 MB of random hex, stored in %d bytes", bytes)
			assert.Less(t, bytes, int64(16_000_000))
		})
	}
}

// TestALargeStateGoesOnInANewRun: a run that is continued as a new one hands its large state on by reference.
func TestALargeStateGoesOnInANewRun(t *testing.T) {
	t.Parallel()
	plain := rig.NewServerThatContinues(t, protocol.ContinueAt{Events: 1, Life: 1})
	s := newShared(t, plain)
	g := growing("continued-large")
	s.work(g)
	th := g.Thread(s.Client, s.Queue)
	var in rig.Counter
	in.N.Set(6)
	got, err := th.Invoke(t.Context(), in)
	require.NoError(t, err)
	require.Len(t, got.Output.Log.Get(), 6)
	require.NotZero(t, s.Continued(th.ID()))
	assert.Equal(t, said(800_000, 0), got.Output.Log.Get()[0])
	history, err := th.History(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(history), 7)
}

// TestWithoutTheStorage: a worker that was not given the storage gives the run back and says why, a client that was not given it says what
// is missing, and a worker that has it goes on.
func TestWithoutTheStorage(t *testing.T) {
	t.Parallel()
	plain := rig.NewServer(t)
	s := newShared(t, plain)
	g := growing("lent")
	stop := s.work(g)
	th := g.Thread(s.Client, s.Queue)
	var in rig.Counter
	in.N.Set(3)
	_, err := th.Invoke(t.Context(), in)
	require.NoError(t, err)
	stop()

	_, err = plain.Show(t.Context(), th.ID())
	require.ErrorIs(t, err, thread.ErrStorage)
	assert.ErrorContains(t, err, th.ID())
	plainWorker := plain.Work(g)
	_, err = g.Thread(plain.Client, th.ID()).State(t.Context())
	require.ErrorIs(t, err, thread.ErrStorage)
	require.ErrorIs(t, err, storage.ErrNone)
	assert.ErrorContains(t, err, th.ID())
	require.NoError(t, th.Start(t.Context(), in)) // its input is a reference
	awaitTaskFailed(t, plain, th.ID(), "no storage driver is configured")
	view, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusRunning, view.Status)
	plainWorker()
	s.work(g)
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	assert.Len(t, got.Output.Log.Get(), 6)
}

// awaitTaskFailed waits until a workflow task of a thread has failed for a reason.
func awaitTaskFailed(t *testing.T, s *rig.Server, id, reason string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		events, found := s.Temporal.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT), ""
		for events.HasNext() {
			e, err := events.Next()
			if !assert.NoError(c, err) {
				return
			}
			if f := e.GetWorkflowTaskFailedEventAttributes(); f != nil {
				found += f.GetFailure().GetMessage()
			}
		}
		assert.Contains(c, found, reason)
	}, 2*time.Minute, 100*time.Millisecond)
}

// TestAnErasedValue: what is missing is said with its name, by clients and in the run; the run stands where it stood, and goes on when
// the value is there again.
func TestAnErasedValue(t *testing.T) {
	t.Parallel()
	plain := rig.NewServer(t)
	s := newShared(t, plain)
	b := superstep.NewStateGraph[rig.Counter]("erased")
	b.AddNode("say", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		s.Log.Append(said(800_000, 1))
		return s, nil
	})
	b.AddNode("ask", rig.Asking("go on"))
	b.AddEdge(superstep.Start, "say")
	b.AddEdge("say", "ask")
	g := b.MustCompile()
	stop := s.work(g)
	th := g.Thread(s.Client, s.Queue)
	_, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	stop()
	paths, _ := s.objects()
	kept := map[string][]byte{}
	for _, path := range paths {
		if kept[path], err = os.ReadFile(path); err == nil {
			err = os.Remove(path)
		}
		require.NoError(t, err)
	}

	other := withStorage(t, plain, s.dir)
	again := g.Thread(other.Client, th.ID())
	_, err = again.History(t.Context())
	require.ErrorIs(t, err, thread.ErrStorage)
	require.ErrorIs(t, err, storage.ErrMissing)
	assert.ErrorContains(t, err, th.ID())
	var missing *storage.Error
	require.ErrorAs(t, err, &missing)
	assert.Contains(t, kept, filepath.Join(s.dir, missing.Object[:2], missing.Object))
	other.work(g)
	require.NoError(t, s.Temporal.SignalWorkflow(t.Context(), th.ID(), "", "of another program", nil)) // the run has something to do
	awaitTaskFailed(t, plain, th.ID(), "is not in "+s.dir)
	for path, was := range kept {
		require.NoError(t, os.WriteFile(path, was, 0o600))
	}
	got, err := again.Resume(t.Context(), true)
	require.NoError(t, err)
	assert.Equal(t, []string{said(800_000, 1), "go on true"}, got.Output.Log.Get())
}

// TestAStorageThatIsGone: while the directory is away nothing is lost, and the run goes on when it is mounted again.
func TestAStorageThatIsGone(t *testing.T) {
	t.Parallel()
	s := newShared(t, rig.NewServer(t))
	gate, began := make(chan struct{}), make(chan struct{}, 100)
	g := superstep.NewStateGraph[rig.Counter]("away")
	g.AddNode("say", func(ctx context.Context, c rig.Counter) (rig.Counter, error) {
		began <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		c.Log.Append(said(100_000, 1))
		return c, ctx.Err()
	})
	g.AddEdge(superstep.Start, "say")
	graph := g.MustCompile()
	s.work(graph)
	th := graph.Thread(s.Client, s.Queue)
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	<-began
	away := s.dir + "-unmounted"
	require.NoError(t, os.Rename(s.dir, away))
	close(gate)
	// For longer than a worker may be silent, and than a call of the storage is repeated, one execution keeps the task.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		d, err := s.Temporal.DescribeWorkflowExecution(t.Context(), th.ID(), "")
		if assert.NoError(c, err) && assert.Len(c, d.GetPendingActivities(), 1) {
			a := d.GetPendingActivities()[0]
			assert.Greater(c, a.GetLastHeartbeatTime().AsTime().Sub(a.GetLastStartedTime().AsTime()), 7*time.Second)
		}
	}, 2*time.Minute, 100*time.Millisecond)
	require.NoError(t, os.Rename(away, s.dir))
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{said(100_000, 1)}, got.Output.Log.Get())
}

// TestNothingReadableLiesInAStorage: with a codec the storage holds what the codec made.
func TestNothingReadableLiesInAStorage(t *testing.T) {
	t.Parallel()
	s := newShared(t, rig.NewServer(t))
	dc := sealed(t)
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: s.Queue, Storage: s.storage, DataConverter: dc})
	require.NoError(t, err)
	g := growing("sealed-values")
	s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Storage: s.storage, DataConverter: dc})
	th := g.Thread(c, s.Queue)
	var in rig.Counter
	in.N.Set(3)
	for runs := 1; runs <= 2; runs++ {
		got, err := th.Invoke(t.Context(), in)
		require.NoError(t, err)
		require.Len(t, got.Output.Log.Get(), 3*runs)
	}
	paths, _ := s.objects()
	require.NotEmpty(t, paths)
	for _, path := range paths {
		object, err := os.ReadFile(path)
		require.NoError(t, err)
		content, err := unpacked(object)
		require.NoError(t, err)
		assert.NotContains(t, string(content), said(800_000, 0)[:32])
		assert.NotContains(t, string(content), `"log"`)
	}
}

// unpacked is the content of an object of a storage.
func unpacked(object []byte) ([]byte, error) {
	if object[0] == 0 {
		return object[1:], nil
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(object[1:], nil)
}
