package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestAHandoffChangesNothing: a run that has more than its last event would take is asked what it would leave. It remembers all that
// its tasks did, as before, and none of it is done again.
func TestAHandoffChangesNothing(t *testing.T) {
	t.Parallel()
	var made atomic.Int32
	remembers := func(name string) graphadapter.Node {
		return graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			task, _ := taskrun.TaskFrom(ctx)
			_, err := task.Memo(ctx, "large", "", func(context.Context) (pregel.Value, error) {
				made.Add(1)
				return pregel.Value(fmt.Sprintf("%q", strings.Repeat(name, 600<<10))), nil
			})
			if err != nil {
				return pregel.Command{}, err
			}
			_, err = task.Ask(ctx, pregel.Value(`"go on?"`), nil, "")
			return writes("log", []string{name}), err
		}}
	}
	r := newRig(t)
	r.work(graph("remembers", map[string]graphadapter.Node{"a": remembers("a"), "b": remembers("b"), "c": remembers("c")}, []string{"a", "b", "c"},
		to(pregel.Start, "a"), to(pregel.Start, "b"), to(pregel.Start, "c")))
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "remembers", Input: input(`{}`)})
	before := r.asks(thread, 3)
	var left protocol.Closing
	value, err := r.client.QueryWorkflow(r.ctx, thread, "", protocol.QueryHandoff)
	if err == nil {
		err = value.Get(&left)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(left.State) == 0 || len(left.State) > 3*600<<10 {
		t.Errorf("it would leave %d bytes, which were to be shortened: %s", len(left.State), left.Error)
	}
	if after := r.asks(thread, 3); asJSON(t, after.Ledgers) != asJSON(t, before.Ledgers) {
		t.Errorf("the tasks remember %d bytes, before %d", len(asJSON(t, after.Ledgers)), len(asJSON(t, before.Ledgers)))
	}
	r.answerTogether(thread, before.Questions)
	if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
		t.Errorf("the run ended with %s", log)
	}
	if n := made.Load(); n != 3 {
		t.Errorf("what 3 tasks remember was made %d times", n)
	}
}
