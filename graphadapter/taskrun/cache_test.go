package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// keeping is a graph whose node "pay" keeps its results, and counts its runs.
func keeping(policy graphadapter.CachePolicy, fn graphadapter.NodeFunc, effects ...graphadapter.Effect) (g *graphadapter.Graph, runs *int) {
	runs = new(int)
	g = oneNode(func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
		*runs++
		return fn(ctx, in)
	}, effects...)
	pay := g.Nodes["pay"]
	pay.Cache = &policy
	g.Nodes["pay"] = pay
	return g, runs
}

func doubled(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
	return pregel.Command{Update: []pregel.Write{write("log", `["ran"]`)}, Goto: []pregel.Target{{Node: "other"}}}, nil
}

func mustAttempt(t *testing.T, g *graphadapter.Graph, task *pregel.Task, env Env) pregel.Outcome {
	t.Helper()
	env.Warn = func(err error) { t.Errorf("warned of %v", err) }
	out, err := RunAttempt(t.Context(), g, task, env)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAKeptResultIsReused with its routing: neither node nor branch runs again.
func TestAKeptResultIsReused(t *testing.T) {
	g, runs := keeping(graphadapter.CachePolicy{}, doubled)
	branched := 0
	pay := g.Nodes["pay"]
	pay.Branches = []graphadapter.BranchFunc{func(context.Context, graphadapter.State) ([]pregel.Target, error) {
		branched++
		return []pregel.Target{{Node: "left"}, {Node: "other", Send: true, Arg: pregel.Value("1")}}, nil
	}}
	g.Nodes["pay"] = pay
	task := payTask()
	task.Branches = []pregel.Branch{{From: "pay", Labels: map[string]string{"left": "other"}}}
	first := mustAttempt(t, g, task, Env{Thread: "one"})
	second := mustAttempt(t, g, task, Env{Thread: "two"})
	if first.Cached || !second.Cached || *runs != 1 || branched != 1 {
		t.Fatalf("cached %v and %v; the node ran %d times, its branch %d times", first.Cached, second.Cached, *runs, branched)
	}
	second.Cached = false
	want, _ := json.Marshal(first)
	if got, _ := json.Marshal(second); string(got) != string(want) || len(second.Routes) != 2 {
		t.Errorf("reused: %s, first: %s", got, want)
	}
	task.Branches[0].Labels["left"] = "pay"
	if out := mustAttempt(t, g, task, Env{}); out.Cached || out.Routes[0].Node != "pay" {
		t.Errorf("with other branches: %+v", out)
	}
}

// TestTheInputIsTheKey: what the task cannot read makes no difference, and everything that it can read does.
func TestTheInputIsTheKey(t *testing.T) {
	state := func(pairs ...string) func(*pregel.Task) {
		return func(k *pregel.Task) {
			k.State = map[string]pregel.Held{}
			for i := 0; i < len(pairs); i += 2 {
				k.State[pairs[i]] = pregel.Hold(pregel.Value(pairs[i+1]))
			}
		}
	}
	send := func(arg string) func(*pregel.Task) {
		return func(k *pregel.Task) { k.Arg = pregel.Value(arg) }
	}
	both := func(fs ...func(*pregel.Task)) func(*pregel.Task) {
		return func(k *pregel.Task) {
			for _, f := range fs {
				f(k)
			}
		}
	}
	for _, c := range []struct {
		name          string
		first, second func(*pregel.Task)
		env           Env
		hit           bool
	}{
		{"another thread, step and path", state("amount", "1"), both(state("amount", "1"), func(k *pregel.Task) { k.Step, k.Path, k.StepsLeft = 9, "x", 1 }), Env{Thread: "r-8"}, true},
		{"the same value in another spelling", state("amount", `{"a":1.0,"b":[]}`), state("amount", `{ "b":[],"a":1 }`), Env{}, true},
		{"another value", state("amount", "1"), state("amount", "2"), Env{}, false},
		{"neighbours among large integers", state("amount", "9007199254740992"), state("amount", "9007199254740993"), Env{}, false},
		{"null is not absent", state("amount", "null"), state(), Env{}, false},
		{"a Send's argument", send("1"), both(send("1"), state("amount", "7")), Env{}, true},
		{"another argument", send("1"), send("2"), Env{}, false},
		{"an argument is no state", state("amount", "1"), both(state(), send(`{"amount":1}`)), Env{}, false},
		{"another context", state("amount", "1"), state("amount", "1"), Env{Context: pregel.Value(`"acme"`)}, false},
	} {
		g, _ := keeping(graphadapter.CachePolicy{}, doubled)
		for i, change := range []func(*pregel.Task){c.first, c.second} {
			task, env := payTask(), Env{Thread: "r-7"}
			if i == 1 {
				env = c.env
			}
			change(task)
			if out := mustAttempt(t, g, task, env); out.Cached != (c.hit && i == 1) {
				t.Errorf("%s: attempt %d reused a result: %v", c.name, i+1, out.Cached)
			}
		}
	}
}

// TestBranchesReadEverything, so with branches all of the state is the key, whatever the node itself reads.
func TestBranchesReadEverything(t *testing.T) {
	g, runs := keeping(graphadapter.CachePolicy{}, doubled)
	g.Spec.Nodes[0].Reads = []string{"amount"}
	pay := g.Nodes["pay"]
	pay.Branches = []graphadapter.BranchFunc{func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		if strings.Contains(string(s["log"].Value()), "vip") {
			return []pregel.Target{{Node: "other"}}, nil
		}
		return nil, nil
	}}
	g.Nodes["pay"] = pay
	for i, log := range []string{`["plain"]`, `["vip"]`} {
		task := payTask()
		task.State["log"], task.Branches = pregel.Hold(pregel.Value(log)), []pregel.Branch{{From: "pay"}}
		if out := mustAttempt(t, g, task, Env{}); out.Cached || len(out.Routes) != i {
			t.Errorf("for %s it came back with %+v", log, out)
		}
	}
	if *runs != 2 {
		t.Errorf("the node ran %d times", *runs)
	}
}

// TestAKeyOfItsOwn decides alone.
func TestAKeyOfItsOwn(t *testing.T) {
	var seen []string
	g, runs := keeping(graphadapter.CachePolicy{Key: func(in graphadapter.Input) (string, error) {
		seen = append(seen, in.State["amount"].String()+string(in.Arg))
		return "always", nil
	}}, doubled)
	task := payTask()
	mustAttempt(t, g, task, Env{})
	task.State, task.Arg = nil, pregel.Value("8")
	if out := mustAttempt(t, g, task, Env{Context: pregel.Value("1")}); !out.Cached || *runs != 1 || strings.Join(seen, " ") != "250 8" {
		t.Errorf("the key was asked with %v; the second attempt came back with %+v", seen, out)
	}
}

// TestResultsEnd with their policy's TTL.
func TestResultsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, runs := keeping(graphadapter.CachePolicy{TTL: time.Minute}, doubled)
		for i, wait := range []time.Duration{0, 59 * time.Second, 2 * time.Second, 59 * time.Second} {
			time.Sleep(wait) // of the bubble's clock: reading a result does not prolong it
			if out := mustAttempt(t, g, payTask(), Env{}); out.Cached != (i%2 == 1) {
				t.Errorf("attempt %d: reused %v", i+1, out.Cached)
			}
		}
		if *runs != 2 {
			t.Errorf("the node ran %d times", *runs)
		}
	})
}

// brokenCache does as it is told.
type brokenCache struct {
	get func() (pregel.Value, error)
	set func() error
}

func (c brokenCache) Get(context.Context, graphadapter.CacheKey) (pregel.Value, error) {
	return c.get()
}
func (c brokenCache) Set(context.Context, graphadapter.CacheKey, pregel.Value, time.Duration) error {
	return c.set()
}
func (c brokenCache) Clear(context.Context, string, string) error { return c.set() }

// TestABrokenCacheCostsARun, and is told of.
func TestABrokenCacheCostsARun(t *testing.T) {
	down := errors.New("down")
	nothing := func() (pregel.Value, error) { return nil, nil }
	fine := func() error { return nil }
	for _, c := range []struct {
		name  string
		cache brokenCache
		key   func(graphadapter.Input) (string, error)
		ops   string
	}{
		{"get fails", brokenCache{func() (pregel.Value, error) { return nil, down }, fine}, nil, "get"},
		{"get panics", brokenCache{func() (pregel.Value, error) { panic("boom") }, fine}, nil, "get"},
		{"get returns something else", brokenCache{func() (pregel.Value, error) { return pregel.Value("["), nil }, fine}, nil, "read"},
		{"get returns another version", brokenCache{func() (pregel.Value, error) { return pregel.Value(`{"version":2}`), nil }, fine}, nil, ""},
		{"set fails", brokenCache{nothing, func() error { return down }}, nil, "set"},
		{"set panics", brokenCache{nothing, func() error { panic("boom") }}, nil, "set"},
		{"no key", brokenCache{nil, nil}, func(graphadapter.Input) (string, error) { return "", down }, "key"},
		{"the key panics", brokenCache{nil, nil}, func(graphadapter.Input) (string, error) { panic("boom") }, "key"},
	} {
		g, runs := keeping(graphadapter.CachePolicy{Key: c.key}, doubled)
		g.Cache = c.cache
		var ops []string
		out, err := RunAttempt(t.Context(), g, payTask(), Env{Warn: func(err error) {
			var failure *graphadapter.CacheError
			if errors.As(err, &failure) && failure.Graph == "refund" && failure.Node == "pay" {
				ops = append(ops, failure.Op)
			}
		}})
		if err != nil || out.Cached || len(out.Update) != 1 || *runs != 1 || strings.Join(ops, " ") != c.ops {
			t.Errorf("%s: %+v, %v; told of %v", c.name, out, err, ops)
		}
	}
}

// TestClearCache forgets nodes, and with a subgraph's node all of its subgraph.
func TestClearCache(t *testing.T) {
	inner, innerRuns := keeping(graphadapter.CachePolicy{}, doubled)
	g, runs := keeping(graphadapter.CachePolicy{}, doubled)
	g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: "sub", Subgraph: "checks"})
	g.Subgraphs = map[string]*graphadapter.Graph{"checks": inner}
	inside := payTask()
	inside.Graph = []string{"checks"}
	both := func() (int, int) {
		mustAttempt(t, g, payTask(), Env{})
		mustAttempt(t, g, inside, Env{})
		return *runs, *innerRuns
	}
	both()
	for _, c := range []struct {
		nodes        []string
		outer, inner int
	}{
		{[]string{"other"}, 1, 1}, {[]string{"pay"}, 2, 1}, {[]string{"sub"}, 2, 2}, {[]string{"other", "pay", "sub"}, 3, 3}, {nil, 4, 4},
	} {
		if err := g.ClearCache(t.Context(), c.nodes...); err != nil {
			t.Fatal(err)
		}
		if outer, inner := both(); outer != c.outer || inner != c.inner {
			t.Errorf("without %v the nodes ran %d and %d times, want %d and %d", c.nodes, outer, inner, c.outer, c.inner)
		}
	}
	if err := g.ClearCache(t.Context(), "nobody"); !is[*graphadapter.CacheError](err) {
		t.Errorf("got %v", err)
	}
	g.Cache = brokenCache{set: func() error { return errors.New("down") }}
	for _, nodes := range [][]string{nil, {"pay"}, {"sub"}} {
		if err := g.ClearCache(t.Context(), nodes...); !is[*graphadapter.CacheError](err) {
			t.Errorf("%v: got %v", nodes, err)
		}
	}
}

// TestRunsShareTheirCache, at the same time too.
func TestRunsShareTheirCache(t *testing.T) {
	g := sideBySide(map[string]graphadapter.Node{"a": {Cache: &graphadapter.CachePolicy{}, Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return said("a"), nil
	}}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if result, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{}); err != nil || string(result.Output["log"]) != `["a"]` {
				t.Errorf("the run ended with %+v, %v", result, err)
			}
		})
	}
	wg.Wait()
	if own := g.ResultCache().(*graphadapter.MemoryCache).Len(); own != 1 {
		t.Errorf("the cache holds %d results", own)
	}
}

// TestAWayThatIsGoneIsNotReused: a result that another version of the graph kept may go to a node that is gone.
func TestAWayThatIsGoneIsNotReused(t *testing.T) {
	before, _ := keeping(graphadapter.CachePolicy{}, doubled)
	after, runs := keeping(graphadapter.CachePolicy{}, func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return pregel.Command{Goto: []pregel.Target{{Node: "pay"}}}, nil
	})
	before.Cache = graphadapter.NewMemoryCache(0, 0)
	after.Cache, after.Spec.Nodes = before.Cache, after.Spec.Nodes[:1]
	mustAttempt(t, before, payTask(), Env{})
	if out := mustAttempt(t, before, payTask(), Env{}); !out.Cached {
		t.Error("nothing was kept")
	}
	if out := mustAttempt(t, after, payTask(), Env{}); out.Cached || *runs != 1 || out.Goto[0].Node != "pay" {
		t.Errorf("got %+v after %d runs", out, *runs)
	}
}
