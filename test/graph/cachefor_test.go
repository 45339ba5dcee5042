package graph_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/store"
)

// callerKey is a key of a value that a caller puts into the context of a run in memory.
type callerKey struct{}

// TestACachedResultIsForWhomItWasMade: what a node has read besides its input makes a result that is not given to the next run.
func TestACachedResultIsForWhomItWasMade(t *testing.T) {
	type run struct {
		Who string `json:"who"`
	}
	inner := superstep.NewStateGraph[asked]("inner")
	inner.AddNode("n", func(ctx context.Context, s asked) (asked, error) {
		s.Out.Append(superstep.Info(ctx).Requester)
		return s, nil
	})
	inner.AddEdge(superstep.Start, "n")
	called := inner.MustCompile()
	tests := map[string]struct {
		reads func(ctx context.Context, s *asked) (string, error)
		key   superstep.CacheKey
		told  bool // the run has a context value
		kept  bool // a second equal run has the result
		for2  string
	}{
		"requester": {reads: func(ctx context.Context, _ *asked) (string, error) { return superstep.Info(ctx).Requester, nil }, for2: "bob"},
		"thread":    {reads: func(ctx context.Context, _ *asked) (string, error) { return superstep.Info(ctx).Thread, nil }, for2: "2"},
		"requester in a task": {reads: func(ctx context.Context, _ *asked) (string, error) {
			return superstep.Task(ctx, "who", func(ctx context.Context) (string, error) { return superstep.Info(ctx).Requester, nil })
		}, for2: "bob"},
		"requester in a called graph": {reads: func(ctx context.Context, _ *asked) (string, error) {
			r, err := called.Invoke(ctx, asked{})
			return fmt.Sprint(r.Output.Out.Get()), err
		}, for2: "[bob]"},
		"context": {reads: func(ctx context.Context, _ *asked) (string, error) {
			r, err := superstep.RunContext[run](ctx)
			return r.Who, err
		}, told: true, for2: "bob"},
		"context, with a key": {reads: func(ctx context.Context, _ *asked) (string, error) {
			r, err := superstep.RunContext[run](ctx)
			return r.Who, err
		}, key: superstep.CacheBy(func(asked) (string, error) { return "all", nil }), told: true, for2: "bob"},
		"thread-wide": {reads: func(ctx context.Context, _ *asked) (string, error) {
			return superstep.Task(ctx, "who", func(context.Context) (string, error) { return "", nil }, superstep.WithThreadKey("k"))
		}},
		"its input": {reads: func(ctx context.Context, _ *asked) (string, error) {
			return superstep.Task(ctx, "t", func(ctx context.Context) (string, error) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				return "same", superstep.Emit(ctx, "x")
			})
		}, kept: true, for2: "same"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			g := superstep.NewStateGraph[asked]("cached-for")
			g.AddNode("n", func(ctx context.Context, s asked) (asked, error) {
				runs.Add(1)
				text, err := test.reads(ctx, &s)
				s.Out.Append(text)
				return s, err
			}, superstep.WithCache(superstep.CachePolicy{Key: test.key}))
			g.AddEdge(superstep.Start, "n")
			pg := g.MustCompile()
			graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
				require.NoError(t, pg.ClearCache(t.Context()))
				runs.Store(0)
				var last superstep.Result[asked]
				for _, who := range []string{"ann", "bob"} {
					id := graphtest.ThreadID(t)
					opts := []superstep.RunOption{superstep.WithRequester(who)}
					if test.told {
						opts = append(opts, superstep.WithContext(run{who}))
					}
					var err error
					last, err = pg.Thread(rt, id).Invoke(t.Context(), asked{}, opts...)
					require.NoError(t, err)
					if test.for2 == "2" {
						assert.Equal(t, []string{id}, last.Output.Out.Get())
					}
				}
				if test.for2 != "2" {
					assert.Equal(t, []string{test.for2}, last.Output.Out.Get())
				}
				assert.Equal(t, test.kept, runs.Load() == 1, "it ran %d times", runs.Load())
			}, pg)
		})
	}
}

// TestAResultFromTheStoreOrTheCallerIsNotKept: in memory a node has the caller's context.
func TestAResultFromTheStoreOrTheCallerIsNotKept(t *testing.T) {
	s, err := store.NewMemory(store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), []string{"who"}, "k", map[string]string{"name": "ann"}))
	for name, reads := range map[string]func(context.Context) (string, error){
		"store": func(ctx context.Context) (string, error) {
			of, err := superstep.StoreFrom(ctx)
			if err != nil {
				return "", err
			}
			item, err := of.Get(ctx, []string{"who"}, "k")
			return fmt.Sprint(item), err
		},
		"caller": func(ctx context.Context) (string, error) { return ctx.Value(callerKey{}).(string), nil },
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			g := superstep.NewStateGraph[asked]("cached-from")
			g.AddNode("n", func(ctx context.Context, s asked) (asked, error) {
				runs++
				text, err := reads(ctx)
				s.Out.Append(text)
				return s, err
			}, superstep.WithCache(superstep.CachePolicy{}))
			g.AddEdge(superstep.Start, "n")
			pg := g.MustCompile()
			for i, who := range []string{"ann", "bob"} {
				ctx := context.WithValue(t.Context(), callerKey{}, who)
				_, err := pg.Thread(superstep.NewMemory(superstep.WithStore(s)), fmt.Sprint(i)).Invoke(ctx, asked{})
				require.NoError(t, err)
			}
			assert.Equal(t, 2, runs)
		})
	}
}
