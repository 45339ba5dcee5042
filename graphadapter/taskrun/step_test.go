package taskrun

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestStepTimeout: what is under way is cancelled and awaited, what waits for its turn is not started, what finished is
// kept, and the thread can be continued.
func TestStepTimeout(t *testing.T) {
	for _, most := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			runs := map[string]int{}
			count := func(name string) int {
				mu.Lock()
				defer mu.Unlock()
				runs[name]++
				return runs[name]
			}
			var cause error
			slow := func(name string) graphadapter.Node {
				return graphadapter.Node{Retry: []graphadapter.RetryPolicy{{}}, Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
					if count(name) > 1 {
						return said(name), nil
					}
					<-ctx.Done()
					mu.Lock()
					defer mu.Unlock()
					cause = context.Cause(ctx)
					return pregel.Command{}, cause
				}}
			}
			g := sideBySide(map[string]graphadapter.Node{"quick": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
				count("quick")
				return said("quick"), nil
			}}, "slow": slow("slow"), "tardy": slow("tardy"), "x": slow("x")})
			thread := NewMemory().Thread(g, "r-7")
			opts := graphadapter.RunOptions{StepTimeout: time.Minute, MaxConcurrency: most}
			_, err := thread.Run(t.Context(), input(`{}`), opts)
			var late *graphadapter.StepTimeoutError
			if !errors.As(err, &late) || late.Step != 1 || late.Graph != "side-by-side" || late.Limit != time.Minute || !errors.As(cause, &late) {
				t.Fatalf("the run ended with %v, its nodes with %v", err, cause)
			}
			if most == 2 && runs["x"] != 0 {
				t.Error("a task was started after the superstep's end")
			}
			mu.Lock()
			runs["x"] = 1
			mu.Unlock()
			if log := mustRun(t, thread, pregel.Input{}, opts); log != `["quick","slow","tardy","x"]` || runs["quick"] != 1 {
				t.Errorf("continued, it ended with %s; what had finished ran %d times", log, runs["quick"])
			}
		})
	}
}

// TestStepTimeoutIsEachSuperstepsOwn, and a failure that came before it is the run's.
func TestStepTimeoutIsEachSuperstepsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := oneNode(calling(func(_ context.Context, task *TaskRun) error {
			time.Sleep(40 * time.Second)
			if task.Info().Step == 4 {
				return errors.New("boom")
			}
			return nil
		}))
		g.Spec.Edges = append(g.Spec.Edges, pregel.Edge{From: "pay", To: "pay"})
		_, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{StepTimeout: time.Minute})
		if err == nil || is[*graphadapter.StepTimeoutError](err) || !strings.Contains(err.Error(), "boom") {
			t.Errorf("the run ended with %v", err)
		}
	})
}
