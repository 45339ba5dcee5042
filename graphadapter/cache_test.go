package graphadapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// keeping is a graph whose node "pay" keeps its results, and counts its runs.
func keeping(policy CachePolicy, fn NodeFunc, effects ...Effect) (g *Graph, runs *int) {
	runs = new(int)
	g = oneNode(func(ctx context.Context, in Input) (pregel.Command, error) {
		*runs++
		return fn(ctx, in)
	}, effects...)
	pay := g.Nodes["pay"]
	pay.Cache = &policy
	g.Nodes["pay"] = pay
	return g, runs
}

func doubled(_ context.Context, in Input) (pregel.Command, error) {
	return pregel.Command{Update: []pregel.Write{write("log", `["ran"]`)}, Goto: []pregel.Target{{Node: "other"}}}, nil
}

func mustAttempt(t *testing.T, g *Graph, task *pregel.Task, env Env) pregel.Outcome {
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
	g, runs := keeping(CachePolicy{}, doubled)
	branched := 0
	pay := g.Nodes["pay"]
	pay.Branches = []BranchFunc{func(context.Context, State) ([]pregel.Target, error) {
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
			k.State = map[string]pregel.Value{}
			for i := 0; i < len(pairs); i += 2 {
				k.State[pairs[i]] = pregel.Value(pairs[i+1])
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
		g, _ := keeping(CachePolicy{}, doubled)
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
	g, runs := keeping(CachePolicy{}, doubled)
	g.Spec.Nodes[0].Reads = []string{"amount"}
	pay := g.Nodes["pay"]
	pay.Branches = []BranchFunc{func(_ context.Context, s State) ([]pregel.Target, error) {
		if strings.Contains(string(s["log"]), "vip") {
			return []pregel.Target{{Node: "other"}}, nil
		}
		return nil, nil
	}}
	g.Nodes["pay"] = pay
	for i, log := range []string{`["plain"]`, `["vip"]`} {
		task := payTask()
		task.State["log"], task.Branches = pregel.Value(log), []pregel.Branch{{From: "pay"}}
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
	g, runs := keeping(CachePolicy{Key: func(in Input) (string, error) {
		seen = append(seen, string(in.State["amount"])+string(in.Arg))
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
		g, runs := keeping(CachePolicy{TTL: time.Minute}, doubled)
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

// TestWhatIsNeverKept: whatever depends on more than the input, or did more than return.
func TestWhatIsNeverKept(t *testing.T) {
	b := &bank{}
	task := func(ctx context.Context) *TaskRun {
		k, _ := TaskFrom(ctx)
		return k
	}
	for name, fn := range map[string]NodeFunc{
		"a failure":  func(context.Context, Input) (pregel.Command, error) { return pregel.Command{}, errors.New("no") },
		"a panic":    func(context.Context, Input) (pregel.Command, error) { panic("boom") },
		"a question": calling(func(ctx context.Context, k *TaskRun) error { _, err := k.Ask(ctx, nil, nil, ""); return err }),
		"a drain":    calling(func(_ context.Context, k *TaskRun) error { k.Drain("stop"); return nil }),
		"a parent command": func(context.Context, Input) (pregel.Command, error) {
			return pregel.Command{Parent: &pregel.Command{}}, nil
		},
		"an effect": func(ctx context.Context, _ Input) (pregel.Command, error) {
			return pregel.Command{}, payWith(ctx, task(ctx))
		},
		"a swallowed effect": func(ctx context.Context, _ Input) (pregel.Command, error) {
			_ = payWith(ctx, task(ctx))
			return pregel.Command{}, nil
		},
		"an effect of a called graph": func(ctx context.Context, _ Input) (pregel.Command, error) {
			inner := oneNode(calling(payWith), b.effect(ledger.TargetKeyed))
			_, err := InvokeNested(ctx, inner, pregel.Value(`{"amount":1}`))
			return pregel.Command{}, err
		},
	} {
		g, runs := keeping(CachePolicy{}, fn, b.effect(ledger.TargetKeyed))
		for range 2 {
			if out, _ := RunAttempt(t.Context(), g, payTask(), Env{Thread: "r-7"}); out.Cached {
				t.Errorf("%s was reused", name)
			}
		}
		if *runs != 2 {
			t.Errorf("%s: the node ran %d times", name, *runs)
		}
	}
}

func payWith(ctx context.Context, k *TaskRun) error {
	_, err := k.Effect(ctx, "payments.refund", pregel.Value(`{}`), CallOptions{})
	return err
}

// TestAnAnswerIsNotReused: neither is what came of one kept, nor does a task that was answered take another's result.
func TestAnAnswerIsNotReused(t *testing.T) {
	var question string
	g, runs := keeping(CachePolicy{}, func(ctx context.Context, _ Input) (pregel.Command, error) {
		k, _ := TaskFrom(ctx)
		answer, err := k.Ask(ctx, nil, nil, "")
		return pregel.Command{Update: []pregel.Write{{Channel: "amount", Value: answer}}}, err
	})
	out := mustAttempt(t, g, payTask(), Env{Thread: "r-7"})
	question = out.Questions[0].ID
	for _, answer := range []string{"1", "2"} {
		task := payTask()
		task.Answers = []pregel.Answer{{QuestionID: question, Value: pregel.Value(answer)}}
		if out := mustAttempt(t, g, task, Env{Thread: "r-7"}); out.Cached || string(out.Update[0].Value) != answer {
			t.Errorf("answered %s it came back with %+v", answer, out)
		}
	}
	if *runs != 3 {
		t.Errorf("the node ran %d times", *runs)
	}
}

// TestOnlyAFirstAttemptLooks: one that may have acted before goes on with it. Its success is kept.
func TestOnlyAFirstAttemptLooks(t *testing.T) {
	g, runs := keeping(CachePolicy{}, doubled)
	acted := mustJournal(t, nil)
	if err := acted.Record(t.Context(), ledger.Entry{Key: "k", Kind: ledger.KindEffect, State: ledger.StateIntent}); err != nil {
		t.Fatal(err)
	}
	mustAttempt(t, g, payTask(), Env{Attempt: 2})
	for _, env := range []Env{{Attempt: 2}, {Suspect: true}, {Journal: acted}} {
		if out := mustAttempt(t, g, payTask(), env); out.Cached {
			t.Errorf("with %+v it reused a result", env)
		}
	}
	if out := mustAttempt(t, g, payTask(), Env{Attempt: 1}); !out.Cached || *runs != 4 {
		t.Errorf("the first attempt of another task came back with %+v after %d runs", out, *runs)
	}
}

// brokenCache does as it is told.
type brokenCache struct {
	get func() (pregel.Value, error)
	set func() error
}

func (c brokenCache) Get(context.Context, CacheKey) (pregel.Value, error) { return c.get() }
func (c brokenCache) Set(context.Context, CacheKey, pregel.Value, time.Duration) error {
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
		key   func(Input) (string, error)
		ops   string
	}{
		{"get fails", brokenCache{func() (pregel.Value, error) { return nil, down }, fine}, nil, "get"},
		{"get panics", brokenCache{func() (pregel.Value, error) { panic("boom") }, fine}, nil, "get"},
		{"get returns something else", brokenCache{func() (pregel.Value, error) { return pregel.Value("["), nil }, fine}, nil, "read"},
		{"get returns another version", brokenCache{func() (pregel.Value, error) { return pregel.Value(`{"version":2}`), nil }, fine}, nil, ""},
		{"set fails", brokenCache{nothing, func() error { return down }}, nil, "set"},
		{"set panics", brokenCache{nothing, func() error { panic("boom") }}, nil, "set"},
		{"no key", brokenCache{nil, nil}, func(Input) (string, error) { return "", down }, "key"},
		{"the key panics", brokenCache{nil, nil}, func(Input) (string, error) { panic("boom") }, "key"},
	} {
		g, runs := keeping(CachePolicy{Key: c.key}, doubled)
		g.Cache = c.cache
		var ops []string
		out, err := RunAttempt(t.Context(), g, payTask(), Env{Warn: func(err error) {
			var failure *CacheError
			if errors.As(err, &failure) && failure.Graph == "refund" && failure.Node == "pay" {
				ops = append(ops, failure.Op)
			}
		}})
		if err != nil || out.Cached || len(out.Update) != 1 || *runs != 1 || strings.Join(ops, " ") != c.ops {
			t.Errorf("%s: %+v, %v; told of %v", c.name, out, err, ops)
		}
	}
}

// TestMemoryCacheIsBounded by entries and by bytes: what was not asked for the longest goes first.
func TestMemoryCacheIsBounded(t *testing.T) {
	key := func(i int) CacheKey { return CacheKey{Graph: "g", Node: "n", Input: fmt.Sprint(i)} }
	value := pregel.Value(strings.Repeat("1", 97)) // with its key 100 bytes
	for _, c := range []*MemoryCache{NewMemoryCache(3, 0), NewMemoryCache(0, 300)} {
		for i := range 5 {
			if err := c.Set(t.Context(), key(i), value, 0); err != nil {
				t.Fatal(err)
			}
			if v, err := c.Get(t.Context(), key(0)); err != nil || string(v) != string(value) {
				t.Errorf("after %d the first is %q, %v", i+1, v, err)
			}
		}
		if v, _ := c.Get(t.Context(), key(1)); v != nil || c.Len() != 3 {
			t.Errorf("it holds %d results, the second is %q", c.Len(), v)
		}
	}
	small := NewMemoryCache(0, 300)
	for _, v := range []pregel.Value{value, pregel.Value(strings.Repeat("1", 300))} {
		if err := small.Set(t.Context(), key(0), v, 0); err != nil {
			t.Fatal(err)
		}
	}
	if v, _ := small.Get(t.Context(), key(0)); v != nil {
		t.Errorf("what does not fit left %q behind", v)
	}
}

// TestMemoryCacheForgetsInTime, and makes room of it.
func TestMemoryCacheForgetsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewMemoryCache(0, 0)
		for i, ttl := range []time.Duration{time.Minute, 0, time.Hour} {
			if err := c.Set(t.Context(), CacheKey{Input: fmt.Sprint(i)}, pregel.Null, ttl); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		if v, _ := c.Get(t.Context(), CacheKey{Input: "0"}); v != nil {
			t.Error("it outlived its time")
		}
		if err := c.Set(t.Context(), CacheKey{Input: "3"}, pregel.Null, 0); err != nil || c.Len() != 3 {
			t.Errorf("it holds %d results, %v", c.Len(), err)
		}
	})
}

// TestClearCache forgets nodes, and with a subgraph's node all of its subgraph.
func TestClearCache(t *testing.T) {
	inner, innerRuns := keeping(CachePolicy{}, doubled)
	g, runs := keeping(CachePolicy{}, doubled)
	g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: "sub", Subgraph: "checks"})
	g.Subgraphs = map[string]*Graph{"checks": inner}
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
	if err := g.ClearCache(t.Context(), "nobody"); !is[*CacheError](err) {
		t.Errorf("got %v", err)
	}
	g.Cache = brokenCache{set: func() error { return errors.New("down") }}
	for _, nodes := range [][]string{nil, {"pay"}, {"sub"}} {
		if err := g.ClearCache(t.Context(), nodes...); !is[*CacheError](err) {
			t.Errorf("%v: got %v", nodes, err)
		}
	}
}

// TestRunsShareTheirCache, at the same time too.
func TestRunsShareTheirCache(t *testing.T) {
	g := sideBySide(map[string]Node{"a": {Cache: &CachePolicy{}, Run: func(context.Context, Input) (pregel.Command, error) {
		return said("a"), nil
	}}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if result, err := g.Invoke(t.Context(), input(`{}`), RunOptions{}); err != nil || string(result.Output["log"]) != `["a"]` {
				t.Errorf("the run ended with %+v, %v", result, err)
			}
		})
	}
	wg.Wait()
	if own := g.cache().(*MemoryCache).Len(); own != 1 {
		t.Errorf("the cache holds %d results", own)
	}
}
