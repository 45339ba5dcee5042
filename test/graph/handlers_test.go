package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/rig"
)

func handled(_ context.Context, s rig.Counter, _ *superstep.NodeError) (superstep.Command[rig.Counter], error) {
	return superstep.Command[rig.Counter]{Update: s}, nil
}

func TestCompileReportsMistakesInHandlersCachesAndDefaults(t *testing.T) {
	type graph = *superstep.StateGraph[rig.Counter]
	long := strings.Repeat("x", 90)
	tests := map[string]struct {
		build   func(g graph) (call string)
		options []superstep.CompileOption
		node    string
		want    string
	}{
		"handler of nothing": {
			build: func(g graph) string { g.AddErrorHandler("aprove", handled); return here() },
			want:  `the error handler of "aprove": there is no such node: did you mean "approve"?`,
		},
		"two handlers": {
			build: func(g graph) string {
				g.AddErrorHandler("a", handled)
				g.AddErrorHandler("a", handled)
				return before(here())
			},
			node: "a", want: "the error handler is already added at ",
		},
		"nil handler": {
			build: func(g graph) string { g.AddErrorHandler("a", nil); return here() },
			node:  "a", want: "the error handler is nil",
		},
		"nil default handler": {
			build: func(g graph) string { g.AddErrorHandler(superstep.All, nil); return here() },
			want:  "the error handler is nil",
		},
		"two default handlers": {
			build: func(g graph) string {
				g.AddErrorHandler(superstep.All, handled)
				g.AddErrorHandler(superstep.All, handled)
				return before(here())
			},
			want: "the error handler is already added at",
		},
		"handler of another input": {
			build: func(g graph) string {
				superstep.AddInputErrorHandler(g, "a", func(context.Context, int, *superstep.NodeError) (superstep.Command[rig.Counter], error) {
					return superstep.Command[rig.Counter]{}, nil
				})
				return shift(here(), -3)
			},
			node: "a", want: "its error handler takes int, but its own input is rig.Counter",
		},
		"default handler of a Send's argument": {
			build: func(g graph) string {
				superstep.AddInputErrorHandler(g, superstep.All, func(context.Context, int, *superstep.NodeError) (superstep.Command[rig.Counter], error) {
					return superstep.Command[rig.Counter]{}, nil
				})
				return shift(here(), -3)
			},
			want: "the default error handler takes int, but a default handler has to take the state",
		},
		"long name with a handler": {
			build: func(g graph) string {
				g.AddNode(long, pass)
				g.AddErrorHandler(long, handled)
				return before(here())
			},
			node: long, want: "its name with an error handler's __error_handler__ in front is too long",
		},
		"a handler's name": {
			build: func(g graph) string { g.AddNode("__error_handler__a", pass); return here() },
			node:  "__error_handler__a", want: `the name "__error_handler__a" is reserved for error handlers`,
		},
		"the default handler's name": {
			build: func(g graph) string { g.AddNode("__default_error_handler__", pass); return here() },
			node:  "__default_error_handler__", want: "is reserved for error handlers",
		},
		"breakpoint at a handler": {
			build:   func(g graph) string { g.AddErrorHandler("a", handled); return "" },
			options: []superstep.CompileOption{superstep.WithInterruptBefore("__error_handler__a")},
			want:    `the breakpoint at "__error_handler__a": there is no such node`,
		},
		"edge to a handler": {
			build: func(g graph) string {
				g.AddErrorHandler("a", handled)
				g.AddEdge("a", "__error_handler__a")
				return before(here())
			},
			want: `there is no node "__error_handler__a"`,
		},
		"defaults twice": {
			build: func(g graph) string {
				g.SetNodeDefaults()
				g.SetNodeDefaults()
				return before(here())
			},
			want: "the node defaults are already set at",
		},
		"no default": {
			build: func(g graph) string { g.SetNodeDefaults(superstep.WithDefer()); return here() },
			want:  "WithDefer, WithTaskQueue and WithSubgraphMemory are no defaults",
		},
		"bad default": {
			build: func(g graph) string { g.SetNodeDefaults(superstep.WithTimeout(-1, 0)); return here() },
			want:  "the node defaults: a timeout must not be negative",
		},
		"a default cache key": {
			build: func(g graph) string {
				g.SetNodeDefaults(superstep.WithCache(superstep.CachePolicy{Key: superstep.CacheBy(byN)}))
				return before(here())
			},
			want: "a cache key is of one node's input",
		},
		"cache of a subgraph": {
			build: func(g graph) string {
				g.AddSubgraph("sub", small(), superstep.WithCache(superstep.CachePolicy{}))
				return before(here())
			},
			node: "sub", want: "WithCache is for functions, and this is a subgraph, whose tasks have results of their own",
		},
		"negative TTL": {
			build: func(g graph) string {
				g.AddNode("c", pass, superstep.WithCache(superstep.CachePolicy{TTL: -1}))
				return before(here())
			},
			node: "c", want: "a cached result's TTL must not be negative",
		},
		"cache key of another input": {
			build: func(g graph) string {
				g.AddNode("c", pass, superstep.WithCache(superstep.CachePolicy{Key: superstep.CacheBy(func(int) (string, error) { return "", nil })}))
				return before(here())
			},
			node: "c", want: "its cache key is made of int, but its input is rig.Counter",
		},
		"nil cache": {
			build:   func(graph) string { return "" },
			options: []superstep.CompileOption{superstep.WithCacheBackend(nil)},
			want:    "the cache of WithCacheBackend is nil",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := superstep.NewStateGraph[rig.Counter]("g")
			g.AddNode("a", pass)
			g.AddNode("approve", pass)
			g.AddEdge(superstep.Start, "a")
			call := test.build(g)
			_, err := g.Compile(test.options...)
			if compile := before(here()); call == "" {
				call = compile
			}
			got := problems(t, err)
			require.Len(t, got, 1, "%v", err)
			assert.Contains(t, got[0].Message, test.want)
			assert.Equal(t, call, got[0].Call)
			assert.Equal(t, test.node, got[0].Node)
		})
	}
}

func byN(s rig.Counter) (string, error) {
	if !s.N.IsSet() {
		return "", errors.New("no n")
	}
	return s.N.String(), nil
}

// LangGraph's set_node_defaults: retries and timeouts for handlers too, handlers and caches only for ordinary nodes,
// nothing for what is inside a subgraph.
func TestNodeDefaultsGoToNodesThatLackThem(t *testing.T) {
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("bare", pass)
	g.SetNodeDefaults(superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 7}), superstep.WithTimeout(time.Minute, time.Second),
		superstep.WithCache(superstep.CachePolicy{TTL: time.Hour}))
	g.AddErrorHandler(superstep.All, handled)
	g.AddNode("own", pass, superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 2}), superstep.WithTimeout(0, 3*time.Second),
		superstep.WithCache(superstep.CachePolicy{TTL: time.Second, Key: superstep.CacheBy(byN)}))
	g.AddErrorHandler("own", handled)
	g.AddSubgraph("sub", small())
	g.AddEdge(superstep.Start, "bare")
	adapter := g.MustCompile().Adapter()

	assert.Equal(t, []pregel.NodeSpec{
		{Name: "__default_error_handler__", Handler: true, RunTimeout: 60_000, IdleTimeout: 1_000},
		{Name: "bare", ErrorHandler: "__default_error_handler__", RunTimeout: 60_000, IdleTimeout: 1_000},
		{Name: "__error_handler__own", Handler: true, RunTimeout: 60_000, IdleTimeout: 1_000},
		{Name: "own", ErrorHandler: "__error_handler__own", IdleTimeout: 3_000},
		{Name: "sub", ErrorHandler: "__default_error_handler__", Subgraph: "sub", Retried: true},
	}, adapter.Spec.Nodes)
	nodes := adapter.Nodes
	attempts := map[string]int{}
	for name, n := range nodes {
		attempts[name] = n.Retry[0].MaxAttempts
	}
	assert.Equal(t, map[string]int{"bare": 7, "own": 2, "sub": 7, "__default_error_handler__": 7, "__error_handler__own": 7}, attempts)
	assert.Equal(t, time.Hour, nodes["bare"].Cache.TTL)
	assert.Equal(t, time.Second, nodes["own"].Cache.TTL)
	for _, name := range []string{"sub", "__default_error_handler__", "__error_handler__own"} {
		assert.Nil(t, nodes[name].Cache, name)
	}
	assert.Equal(t, time.Minute, nodes["__error_handler__own"].RunTimeout)
	assert.Zero(t, nodes["sub"].RunTimeout)
	inner := adapter.Subgraphs["sub"]
	assert.Empty(t, inner.Nodes["only"].Retry)
	assert.Empty(t, inner.Spec.Nodes[0].ErrorHandler)
}

func TestCacheKeysAreMadeOfTheNodesInput(t *testing.T) {
	key := func(build func(g *superstep.StateGraph[rig.Counter]), in graphadapter.Input) (string, error) {
		g := superstep.NewStateGraph[rig.Counter]("g")
		build(g)
		g.AddEdge(superstep.Start, superstep.End)
		return g.MustCompile().Adapter().Nodes["c"].Cache.Key(in)
	}
	state := func(g *superstep.StateGraph[rig.Counter]) {
		g.AddNode("c", pass, superstep.WithCache(superstep.CachePolicy{Key: superstep.CacheBy(byN)}))
	}
	got, err := key(state, graphadapter.Input{State: graphadapter.State{"n": pregel.Hold(pregel.Value("7"))}})
	require.NoError(t, err)
	assert.Equal(t, "7", got)
	_, err = key(state, graphadapter.Input{})
	assert.EqualError(t, err, "no n")
	_, err = key(state, graphadapter.Input{State: graphadapter.State{"n": pregel.Hold(pregel.Value(`"seven"`))}})
	assert.ErrorContains(t, err, `cannot read field "n" as int64`)
	got, err = key(state, graphadapter.Input{Arg: pregel.Value(`{"n":8}`)})
	require.NoError(t, err)
	assert.Equal(t, "8", got, "of a Send's argument")

	arg := func(g *superstep.StateGraph[rig.Counter]) {
		superstep.AddInputNode(g, "c", func(context.Context, int) (superstep.Command[rig.Counter], error) {
			return superstep.Command[rig.Counter]{}, nil
		}, superstep.WithCache(superstep.CachePolicy{Key: superstep.CacheBy(func(n int) (string, error) {
			return strings.Repeat("i", n), nil
		})}))
	}
	got, err = key(arg, graphadapter.Input{Arg: pregel.Value("3")})
	require.NoError(t, err)
	assert.Equal(t, "iii", got)
}

type limited struct{ error }

func TestRetryIfTellsErrorsApartByType(t *testing.T) {
	policy := superstep.RetryPolicy{RetryOn: superstep.RetryIf[limited]}
	assert.True(t, policy.RetryOn(errors.Join(errors.New("x"), limited{errors.New("too many")})))
	assert.False(t, policy.RetryOn(errors.New("too many")))
}

func TestRetryOnOfASubgraphIsGivenANodeError(t *testing.T) {
	var seen []error
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddSubgraph("sub", small(), superstep.WithRetry(superstep.RetryPolicy{RetryOn: func(err error) bool {
		seen = append(seen, err)
		return superstep.RetryIf[*superstep.NodeError](err)
	}}))
	g.AddEdge(superstep.Start, "sub")
	policies := g.MustCompile().Adapter().Nodes["sub"].Retry
	_, again := graphadapter.RetryAfter(policies, 1, &pregel.NodeError{Type: "limited", Message: "m", Graph: "small", Node: "only"})
	assert.True(t, again)
	assert.Equal(t, []error{&superstep.NodeError{Type: "limited", Message: "m", Graph: "small", Node: "only"}}, seen)
}
