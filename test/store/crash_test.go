package store_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/internal/testserver"
	"superstep.dev/store"
	"superstep.dev/store/sqlite"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// places calls do with the place of a store in SQLite, and of one in PostgreSQL.
func places(t *testing.T, do func(t *testing.T, place string)) {
	t.Run("sqlite", func(t *testing.T) { do(t, fileIn(t, "store.db")) })
	t.Run("postgres", func(t *testing.T) {
		if testing.Short() {
			t.Skip("starts a PostgreSQL")
		}
		server := testserver.StartPostgres(t)
		awaitOpen(t, server.DSN("postgres"))
		do(t, server.DSN("postgres"))
	})
}

// awaitOpen opens a store whose server may just have begun.
func awaitOpen(t *testing.T, place string) (s *store.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		s, err = openAt(t.Context(), place)
		return err == nil
	}, testPatience, testPoll)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// TestAWorkerIsKilledWithAPut kills a worker with SIGKILL before, during and after the write of an item, in every mode. Another one goes on,
// and the item has one version.
func TestAWorkerIsKilledWithAPut(t *testing.T) {
	places(t, func(t *testing.T, place string) {
		s := awaitOpen(t, place)
		for mode := range rig.Modes {
			for _, hang := range []string{hangBefore, hangCommitted, hangPut} {
				t.Run(mode+" "+hang, func(t *testing.T) {
					if testing.Short() && hang != hangCommitted {
						t.Skip("kills a worker, and waits for another one to notice")
					}
					t.Parallel()
					th, first := hung(t, place, mode, child{Hang: hang})
					first.kill(t)
					finished(t, th)
					countedOnce(t, s, th)
				})
			}
		}
	})
}

// TestAFrozenWorkerGoesOn lets the write of a worker that lost its task reach the database when another worker has written the item, and
// somebody else has written it since.
func TestAFrozenWorkerGoesOn(t *testing.T) {
	places(t, func(t *testing.T, place string) {
		s := awaitOpen(t, place)
		goOn := fileIn(t, "go")
		th, first := hung(t, place, "sync", child{Hang: hangBefore, Go: goOn})
		require.NoError(t, first.Process.Signal(stop))
		finished(t, th)
		countedOnce(t, s, th)
		require.NoError(t, s.Put(t.Context(), []string{"counts"}, th.ID(), count{40}))
		require.NoError(t, os.WriteFile(goOn, nil, 0o600))
		require.NoError(t, first.Process.Signal(goes))
		first.awaitFile(t, first.marker+arrived)
		item, err := s.Get(t.Context(), []string{"counts"}, th.ID())
		require.NoError(t, err)
		require.JSONEq(t, `{"n":40}`, string(item.Value))
		require.EqualValues(t, 2, item.Version)
	})
}

// running is a thread whose worker can be replaced.
type running struct {
	*superstep.Thread[state]
	runtime superstep.Runtime
	place   string
	queue   string
	address string
}

// hung starts a thread whose worker stands still with the write of an item.
func hung(t *testing.T, place, mode string, c child) (*running, *process) {
	t.Helper()
	server := rig.NewServer(t)
	c.Place, c.Address, c.Queue, c.Marker = place, testserver.Address(t), server.Queue, fileIn(t, "marker")
	first := start(t, c)
	first.marker = c.Marker
	id := graphtest.ThreadID(t)
	r := &running{counting(mode, child{}).Thread(server.Client, id), server.Client, place, server.Queue, c.Address}
	require.Eventually(t, func() bool {
		return r.Start(t.Context(), map[string]any{"key": id}) == nil // once the worker is there
	}, testPatience, testPoll)
	first.awaitFile(t, c.Marker)
	return r, first
}

// finished lets another worker finish the thread.
func finished(t *testing.T, r *running) {
	t.Helper()
	start(t, child{Place: r.place, Address: r.address, Queue: r.queue})
	got, err := r.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	require.Equal(t, []string{"counted", "after"}, got.Output.Log.Get())
}

// countedOnce holds the item that the thread has counted in to one write.
func countedOnce(t *testing.T, s *store.Store, r *running) {
	t.Helper()
	item, err := s.Get(t.Context(), []string{"counts"}, r.ID())
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(item.Value))
	require.EqualValues(t, 1, item.Version, "it was written once")
	effects, err := r.Effects(t.Context())
	require.NoError(t, err)
	require.Len(t, effects.Effects, 1)
	require.Equal(t, "superstep.store", effects.Effects[0].Effect)
	require.Equal(t, "committed", effects.Effects[0].State)
	receipt, ok, err := s.Written(t.Context(), effects.Effects[0].Key)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, store.Receipt{Version: 1}, receipt)
}

// TestEveryCrash crashes a graph that writes to its store at every point, in every mode: each item has as many versions as without a crash,
// also where nothing but the database keeps the writes of lost workers apart.
func TestEveryCrash(t *testing.T) {
	var s *store.Store
	open := func(t testing.TB) *store.Store {
		var err error
		s, err = sqlite.Open(fmt.Sprint(t.TempDir(), "/store.db"), store.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		return s
	}
	each := func(testing.TB) (superstep.Runnable, func() error) {
		return remembering(), func() error {
			hits, err := s.Search(context.Background(), nil, store.Query{})
			versions := map[string]int64{}
			for _, h := range hits {
				versions[h.Key] = h.Version
			}
			if want := fmt.Sprint(map[string]int64{"a": 2, "b": 1, "last": 1}); err == nil && fmt.Sprint(versions) != want {
				err = fmt.Errorf("the store has %v, want %s", versions, want)
			}
			return err
		}
	}
	graphtest.Matrix(t, remembering(), map[string]any{}, graphtest.Store(open), graphtest.EachRun(each))
	t.Run("interrupted", func(t *testing.T) { graphtest.Interrupts(t, remembering(), map[string]any{}, graphtest.Store(open)) })
}

// remembering is a graph that puts two items, one of them twice, puts and deletes a third, and puts a fourth behind that.
func remembering() *superstep.Graph[state] {
	g := superstep.NewStateGraph[state]("remembering")
	g.AddNode("first", func(ctx context.Context, st state) (state, error) {
		memory, err := superstep.StoreFrom(ctx)
		if err != nil {
			return st, err
		}
		ns := []string{"m"}
		for i, key := range []string{"a", "b", "a", "c"} {
			if err := memory.Put(ctx, ns, key, count{i}); err != nil {
				return st, err
			}
		}
		st.Log.Append("first")
		return st, memory.Delete(ctx, ns, "c")
	})
	g.AddNode("second", func(ctx context.Context, st state) (state, error) {
		memory, err := superstep.StoreFrom(ctx)
		if err != nil {
			return st, err
		}
		st.Log.Append("second")
		return st, memory.Put(ctx, []string{"m"}, "last", count{1})
	})
	g.AddEdge(superstep.Start, "first")
	g.AddEdge("first", "second")
	return g.MustCompile()
}

// TestContext: a node under test has a store, and what it puts there is written once.
func TestContext(t *testing.T) {
	s, err := store.NewMemory(store.Options{})
	require.NoError(t, err)
	ctx := graphtest.Context(t, graphtest.Store(func(testing.TB) *store.Store { return s }))
	for range 2 {
		memory, err := superstep.StoreFrom(ctx)
		require.NoError(t, err)
		require.NoError(t, memory.Put(ctx, []string{"m"}, "x", count{1}))
		require.Equal(t, map[string]int64{"x": 1}, versions(t, s))
		ctx = graphtest.Again(ctx) // as after a crash
	}
}

// TestTheDatabaseIsAwayForARun: a node that cannot write is retried by its policy, and goes on when the database is back.
func TestTheDatabaseIsAwayForARun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a PostgreSQL")
	}
	database := testserver.StartPostgres(t)
	s := awaitOpen(t, database.DSN("postgres"))
	var attempts atomic.Int64
	b := superstep.NewStateGraph[state]("patient")
	b.AddNode("put", func(ctx context.Context, st state) (state, error) {
		attempts.Add(1)
		memory, err := superstep.StoreFrom(ctx)
		if err == nil {
			err = memory.Put(ctx, []string{"m"}, "x", count{1})
		}
		return st, err
	}, superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 1000, InitialInterval: 50 * time.Millisecond, MaxInterval: 100 * time.Millisecond}))
	b.AddEdge(superstep.Start, "put")
	g := b.MustCompile()
	server := rig.NewServer(t)
	server.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Store: s})
	th := g.Thread(server.Client, graphtest.ThreadID(t))
	require.NoError(t, database.Kill())
	require.NoError(t, th.Start(t.Context(), map[string]any{}))
	require.Eventually(t, func() bool { return attempts.Load() > 3 }, testPatience, testPoll)
	require.NoError(t, database.Restart())
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	require.Equal(t, map[string]int64{"x": 1}, versions(t, s))
}
