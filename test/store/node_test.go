package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/store"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

const (
	testPatience = 2 * time.Minute
	testPoll     = 20 * time.Millisecond

	stop, goes = syscall.SIGSTOP, syscall.SIGCONT
)

// withStore runs a body on every runtime, with one store.
func withStore(t *testing.T, g *superstep.Graph[state], body func(t *testing.T, rt superstep.Runtime, s *store.Store, th *superstep.Thread[state])) {
	t.Helper()
	for name, runtime := range map[string]func(*testing.T, *store.Store) superstep.Runtime{
		"memory": func(_ *testing.T, s *store.Store) superstep.Runtime {
			return superstep.NewMemory(superstep.WithStore(s))
		},
		"temporal": func(t *testing.T, s *store.Store) superstep.Runtime {
			server := rig.NewServer(t)
			server.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Store: s})
			return server.Client
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := awaitOpen(t, fileIn(t, "store.db"))
			rt := runtime(t, s)
			body(t, rt, s, g.Thread(rt, graphtest.ThreadID(t)))
		})
	}
}

// one is a graph of one node, and of one that asks behind it.
func one(name string, node func(context.Context, *superstep.Store) error) *superstep.Graph[state] {
	g := superstep.NewStateGraph[state](name)
	g.AddNode("node", func(ctx context.Context, s state) (state, error) {
		memory, err := superstep.StoreFrom(ctx)
		if err == nil {
			err = node(ctx, memory)
		}
		s.Log.Append("node")
		return s, err
	})
	g.AddNode("ask", func(ctx context.Context, s state) (state, error) {
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		return s, err
	})
	g.AddEdge(superstep.Start, "node")
	g.AddEdge("node", "ask")
	return g.MustCompile()
}

// versions are those of the items of namespace "m".
func versions(t *testing.T, s *store.Store) map[string]int64 {
	t.Helper()
	hits, err := s.Search(t.Context(), []string{"m"}, store.Query{Limit: 100})
	require.NoError(t, err)
	out := map[string]int64{}
	for _, h := range hits {
		out[h.Key] = h.Version
	}
	return out
}

func TestNodesShareTheStore(t *testing.T) {
	g := one("shares", func(ctx context.Context, memory *superstep.Store) error {
		ns := []string{"m"}
		var wg sync.WaitGroup
		errs := make([]error, 3)
		for i, key := range []string{"x", "y", "z"} { // side by side
			wg.Go(func() { errs[i] = memory.Put(ctx, ns, key, count{i}) })
		}
		wg.Wait()
		_, err := superstep.Task(ctx, "within", func(ctx context.Context) (int, error) {
			inner, err := superstep.StoreFrom(ctx)
			return 0, errors.Join(err, inner.Put(ctx, ns, "x", count{7}))
		})
		if err := errors.Join(append(errs, err, memory.Put(ctx, ns, "x", count{8}))...); err != nil {
			return err
		}
		item, err := memory.Get(ctx, ns, "x") // its own writes it sees at once
		var n count
		if err = errors.Join(err, item.Decode(&n)); err != nil || n.N != 8 {
			return errors.Join(err, errors.New("another value"))
		}
		if err := memory.Put(ctx, ns, "x", count{1}, store.WithID("mine")); !errors.Is(err, store.ErrBadInput) {
			return errors.Join(err, errors.New("an id of its own"))
		}
		return memory.Delete(ctx, ns, "y")
	})
	withStore(t, g, func(t *testing.T, rt superstep.Runtime, s *store.Store, th *superstep.Thread[state]) {
		require.NoError(t, s.Put(t.Context(), []string{"m"}, "y", count{100}), "from outside")
		got, err := th.Invoke(t.Context(), map[string]any{})
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, got.Status)
		require.Equal(t, map[string]int64{"x": 3, "z": 1}, versions(t, s))
		effects, err := th.Effects(t.Context())
		require.NoError(t, err)
		require.Len(t, effects.Effects, 6)
		for _, e := range effects.Effects {
			require.Equal(t, "committed", e.State)
			require.Contains(t, string(e.Receipt), `"namespace":["m"]`)
		}
		other := g.Thread(rt, graphtest.ThreadID(t))
		_, err = other.Invoke(t.Context(), map[string]any{})
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"x": 6, "z": 2}, versions(t, s), "another thread's writes are others")
	})
}

// TestValuesAreInNoHistory: what a node stores is in the database alone.
func TestValuesAreInNoHistory(t *testing.T) {
	b := superstep.NewStateGraph[state]("private")
	b.AddNode("first", func(_ context.Context, s state) (state, error) { return s, nil })
	b.AddNode("puts", func(ctx context.Context, s state) (state, error) {
		memory, err := superstep.StoreFrom(ctx)
		if err == nil {
			err = memory.Put(ctx, []string{"m"}, "x", map[string]string{"text": "between-you-and-me"})
		}
		return s, err
	})
	b.AddEdge(superstep.Start, "first")
	b.AddNode("beside", func(_ context.Context, s state) (state, error) { return s, nil }) // with it each task has an activity
	b.AddEdge("first", "puts")
	b.AddEdge("first", "beside")
	g := b.MustCompile()
	server := rig.NewServer(t)
	s := awaitOpen(t, fileIn(t, "store.db"))
	server.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Store: s})
	th := g.Thread(server.Client, graphtest.ThreadID(t))
	_, err := th.Invoke(t.Context(), map[string]any{})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"x": 1}, versions(t, s))
	events, seen := server.Temporal.GetWorkflowHistory(t.Context(), th.ID(), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT), ""
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		seen += e.String()
	}
	require.True(t, strings.Contains(seen, "superstep.store"), "the task of the second superstep is stored as it is")
	require.False(t, strings.Contains(seen, "between-you-and-me"))
}

func TestNodesWithoutAStore(t *testing.T) {
	g := one("away", func(ctx context.Context, memory *superstep.Store) error {
		return memory.Put(ctx, []string{"m"}, "x", count{1})
	})
	rig.OnRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[state]) {
		_, err := th.Invoke(t.Context(), map[string]any{})
		require.ErrorContains(t, err, "this process was given none")
	})
}

// TestAWriteThatFailedIsTheSame: a node that puts again what failed makes one write, and one that puts something else instead another.
func TestAWriteThatFailedIsTheSame(t *testing.T) {
	var then int
	g := one("fails", func(ctx context.Context, memory *superstep.Store) error {
		if err := memory.Put(ctx, []string{"m"}, "x", count{1}); err == nil {
			return errors.New("it should have failed")
		}
		return memory.Put(ctx, []string{"m"}, "x", count{then})
	})
	for name, want := range map[string]struct {
		then     int
		versions int64
	}{"the same": {1, 1}, "another": {2, 2}} {
		t.Run(name, func(t *testing.T) {
			s := awaitOpen(t, fileIn(t, "store.db"))
			loses := s.Around(func(b store.Backend) store.Backend { return &losing{Backend: b} })
			then = want.then
			_, err := g.Thread(superstep.NewMemory(superstep.WithStore(loses)), "r-1").Invoke(t.Context(), map[string]any{})
			require.NoError(t, err)
			require.Equal(t, map[string]int64{"x": want.versions}, versions(t, s))
		})
	}
}

// losing is a backend whose first write is made, and whose reply is lost.
type losing struct {
	store.Backend
	lost bool
}

func (l *losing) Write(ctx context.Context, w store.Write) (store.Receipt, error) {
	receipt, err := l.Backend.Write(ctx, w)
	if !l.lost {
		l.lost = true
		return store.Receipt{}, store.Unavailable("the database", errors.New("no reply"))
	}
	return receipt, err
}

// TestCancelUndoesWhatWasPut: what the run has created is removed, what somebody wrote since stays, and about what it has replaced a person is asked.
func TestCancelUndoesWhatWasPut(t *testing.T) {
	g := one("undoes", func(ctx context.Context, memory *superstep.Store) error {
		for _, key := range []string{"created", "shared", "replaced"} {
			if err := memory.Put(ctx, []string{"m"}, key, count{1}); err != nil {
				return err
			}
		}
		return nil
	})
	withStore(t, g, func(t *testing.T, _ superstep.Runtime, s *store.Store, th *superstep.Thread[state]) {
		require.NoError(t, s.Put(t.Context(), []string{"m"}, "replaced", count{0}))
		_, err := th.Invoke(t.Context(), map[string]any{})
		require.NoError(t, err)
		require.NoError(t, s.Put(t.Context(), []string{"m"}, "shared", count{5}))
		require.NoError(t, th.Cancel(t.Context(), "wrong", superstep.WithMode(thread.CancelCompensate)))
		require.Eventually(t, func() bool {
			view, err := th.Show(t.Context())
			return err == nil && view.Status == thread.StatusWaiting && len(view.Questions) == 1
		}, testPatience, testPoll)
		require.Equal(t, map[string]int64{"shared": 2, "replaced": 2}, versions(t, s))
		view, err := th.Show(t.Context())
		require.NoError(t, err)
		require.Contains(t, view.Questions[0].Text(), "not kept")
	})
}

// TestSubgraphsWrite: the nodes of a subgraph, and of a graph that a node calls, write to the same store, each once.
func TestSubgraphsWrite(t *testing.T) {
	puts := func(name string) *superstep.Graph[state] {
		g := superstep.NewStateGraph[state](name)
		g.AddNode("put", func(ctx context.Context, s state) (state, error) {
			memory, err := superstep.StoreFrom(ctx)
			if err == nil {
				err = memory.Put(ctx, []string{"m"}, name, count{1})
			}
			s.Log.Append(name)
			return s, err
		})
		g.AddEdge(superstep.Start, "put")
		return g.MustCompile()
	}
	called := puts("called")
	b := superstep.NewStateGraph[state]("outer")
	b.AddSubgraph("inner", puts("inner"))
	b.AddNode("calls", func(ctx context.Context, s state) (state, error) {
		_, err := called.Invoke(ctx, map[string]any{})
		return s, err
	})
	b.AddEdge(superstep.Start, "inner")
	b.AddEdge("inner", "calls")
	withStore(t, b.MustCompile(), func(t *testing.T, _ superstep.Runtime, s *store.Store, th *superstep.Thread[state]) {
		got, err := th.Invoke(t.Context(), map[string]any{})
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, got.Status)
		require.Equal(t, map[string]int64{"inner": 1, "called": 1}, versions(t, s))
	})
}
