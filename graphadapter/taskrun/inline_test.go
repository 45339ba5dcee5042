package taskrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// goroutine names the goroutine that calls it.
func goroutine() string {
	var stack [64]byte
	return strings.Fields(string(stack[:runtime.Stack(stack[:], false)]))[1]
}

// chainOf is a graph of one node behind the other, in order of name, and where each of them ran.
func chainOf(nodes map[string]graphadapter.NodeFunc) (g *graphadapter.Graph, where map[string]string) {
	g = &graphadapter.Graph{Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "chain",
		Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}}}, Nodes: map[string]graphadapter.Node{}}
	where = map[string]string{}
	var mu sync.Mutex
	last := pregel.Start
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[name]
		g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: name})
		g.Spec.Edges = append(g.Spec.Edges, pregel.Edge{From: last, To: name})
		g.Nodes[name] = graphadapter.Node{RunTimeout: time.Minute, Retry: []graphadapter.RetryPolicy{{InitialInterval: -1, NoJitter: true, RetryOn: func(error) bool { return true }}},
			Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
				mu.Lock() // one that is left behind has no word with the next
				where[name] = goroutine()
				mu.Unlock()
				return node(ctx, in)
			}}
		last = name
	}
	return g, where
}

func logs(entry string) graphadapter.NodeFunc {
	return func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return pregel.Command{Update: []pregel.Write{write("log", `["`+entry+`"]`)}}, nil
	}
}

// TestNodesStayOnOneGoroutine while they come back: one that ends it, or is deaf to the end of its time, takes it along,
// and its next attempt and what follows run on another.
func TestNodesStayOnOneGoroutine(t *testing.T) {
	for what, hold := range map[string]func(<-chan struct{}){
		"ends it": func(<-chan struct{}) { runtime.Goexit() },
		"is deaf": func(late <-chan struct{}) { <-late },
	} {
		synctest.Test(t, func(t *testing.T) {
			late := make(chan struct{})
			defer close(late)
			var mu sync.Mutex
			tries, first := 0, ""
			g, where := chainOf(map[string]graphadapter.NodeFunc{"a": logs("a"), "b": logs("b"), "d": logs("d"), "e": logs("e"),
				"c": func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
					mu.Lock()
					tries++
					begins := tries == 1
					if begins {
						first = goroutine()
					}
					mu.Unlock()
					if begins {
						hold(late)
					}
					return logs("c")(ctx, in)
				}})
			began := time.Now()
			out, err := Invoke(t.Context(), g, pregel.Input{Value: pregel.Value(`{}`)}, graphadapter.RunOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || string(out.Output["log"]) != `["a","b","c","d","e"]` || tries != 2 {
				t.Fatalf("%s: %d attempts, output %s, error %v", what, tries, out.Output["log"], err)
			}
			if took := time.Since(began); what == "is deaf" && took != time.Minute+abandonAfter {
				t.Errorf("%s: the run took %v", what, took)
			}
			if where["a"] != where["b"] || where["a"] != first || where["d"] != where["e"] || where["c"] == first ||
				where["d"] == first || first == goroutine() {
				t.Errorf("%s: the nodes ran on the goroutines %v, the first attempt on %s, the run was begun on %s", what, where, first, goroutine())
			}
		})
	}
}

// TestADeafNodesResultIsLate: it does not count once others have gone on, and disturbs nobody.
func TestADeafNodesResultIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		g, _ := chainOf(map[string]graphadapter.NodeFunc{"a": func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			if task, _ := TaskFrom(ctx); task.Info().Attempt == 1 {
				<-late
				return logs("late")(ctx, in)
			}
			return logs("again")(ctx, in)
		}, "b": func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			close(late)
			synctest.Wait() // the first attempt of a has come back
			return logs("b")(ctx, in)
		}})
		out, err := Invoke(t.Context(), g, pregel.Input{Value: pregel.Value(`{}`)}, graphadapter.RunOptions{})
		if err != nil || string(out.Output["log"]) != `["again","b"]` {
			t.Fatalf("output %s, error %v", out.Output["log"], err)
		}
	})
}

// TestADeafNodeMayBeginLate: one whose own time is over before it begins is not waited for either.
func TestADeafNodeMayBeginLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		defer close(late)
		g := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) {
			<-late
			return pregel.Command{}, nil
		})
		node := g.Nodes["pay"]
		node.RunTimeout = time.Second
		g.Nodes["pay"] = node
		run, err := newTaskRun(g, payTask(), &Env{Thread: "r-7"})
		if err != nil {
			t.Fatal(err)
		}
		bounded := run.bound(t.Context())
		defer run.unbound()
		<-bounded.Done()
		synctest.Wait() // whoever is told of that has been
		began, came := time.Now(), make(inbox, 1)
		go func() {
			if _, here := run.runInline(bounded, came, watchDeadline(t.Context())); here {
				t.Error("a deaf node has come back")
			}
		}()
		if r := <-came; !r.left || time.Since(began) != abandonAfter {
			t.Errorf("after %v the resumer was given %+v", time.Since(began), r)
		}
	})
}

// TestAnObserverMayEndItsTest, which is the caller of the run.
func TestAnObserverMayEndItsTest(t *testing.T) {
	g, _ := chainOf(map[string]graphadapter.NodeFunc{"a": logs("a"), "b": logs("b")})
	ended := make(chan string, 1)
	go func() {
		defer func() { ended <- fmt.Sprint(recover()) }()
		_, err := Invoke(t.Context(), g, pregel.Input{Value: pregel.Value(`{}`)}, graphadapter.RunOptions{Observer: func(e pregel.Event) {
			if e.Kind == pregel.EventTaskEnd {
				runtime.Goexit()
			}
		}})
		t.Errorf("the run went on, error %v", err)
	}()
	if how := <-ended; how != "<nil>" {
		t.Errorf("the caller ended with %s", how)
	}
}

// TestAPanicOfTheEngineIsItsCallers: nobody else could tell of it.
func TestAPanicOfTheEngineIsItsCallers(t *testing.T) {
	g, _ := chainOf(map[string]graphadapter.NodeFunc{"a": logs("a")})
	defer func() {
		var broken *graphadapter.PanicError
		if err, _ := recover().(error); !errors.As(err, &broken) || broken.Message != "an observer is broken" {
			t.Errorf("it panicked with %v", err)
		}
	}()
	_, _ = Invoke(t.Context(), g, pregel.Input{Value: pregel.Value(`{}`)}, graphadapter.RunOptions{Observer: func(e pregel.Event) {
		if e.Kind == pregel.EventTaskEnd {
			panic("an observer is broken")
		}
	}})
}
