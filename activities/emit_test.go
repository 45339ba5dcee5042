package activities_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// told writes emissions down: values as they are, messages in brackets, resets by their attempt.
func told(emitted []pregel.Emission) string {
	var words []string
	for _, e := range emitted {
		switch e.Kind {
		case pregel.EmissionMessage:
			words = append(words, "("+string(e.Value)+")")
		case pregel.EmissionReset:
			words = append(words, fmt.Sprintf("reset %d", e.Attempt))
		default:
			words = append(words, string(e.Value))
		}
	}
	return strings.Join(words, ", ")
}

// TestRepeatedAttemptsEmitInOrder, on whichever worker they run; what a lost worker's execution emitted is not told, for
// its attempt is made again.
func TestRepeatedAttemptsEmitInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	emitting := make(chan struct{})
	executions := &seen[int]{}
	g := one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		n := task.Info().Attempt
		if err := task.Emit(pregel.Value(fmt.Sprint(n))); err != nil {
			return pregel.Command{}, err
		}
		if executions.add(n) == 2 {
			close(emitting)
			<-ctx.Done() // the worker is lost between two emissions
			return pregel.Command{}, context.Cause(ctx)
		}
		if err := task.EmitMessage(pregel.Value(fmt.Sprint(10 * n))); err != nil {
			return pregel.Command{}, err
		}
		if n < 3 {
			return pregel.Command{}, errors.New("not yet")
		}
		return logs("done"), nil
	}, every(time.Millisecond, 3))
	l, stop := r.work(g)
	run := r.task("one", pregel.Task{Step: 1, Path: "work", Node: "work"})
	<-emitting
	l.cutOff(errors.New("no line"))
	l.muffle(true)
	stop()
	r.work(g)
	out := r.outcome(run)
	if got, want := told(out.Emitted), "1, (10), reset 2, 2, (20), reset 3, 3, (30)"; got != want {
		t.Errorf("it emitted %s, want %s", got, want)
	}
	if got := executions.list(); !reflect.DeepEqual(got, []int{1, 2, 2, 3}) {
		t.Errorf("the executions were of the attempts %v", got)
	}
}

// TestAFailureTellsWhatAllAttemptsEmitted, as far as it fits the heartbeats: the oldest go first, and what is left says
// whose it is.
func TestAFailureTellsWhatAllAttemptsEmitted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	large := pregel.Value(`"` + strings.Repeat("x", 60<<10) + `"`)
	r.work(one(func(_ context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		for range task.Info().Attempt {
			if err := task.Emit(large); err != nil {
				return pregel.Command{}, err
			}
		}
		if task.Info().Attempt < 4 {
			return pregel.Command{}, errors.New("not yet")
		}
		return logs("done"), nil
	}, every(time.Millisecond, 4)))
	out := r.outcome(r.task("one", pregel.Task{Step: 1, Path: "work", Node: "work"}))
	got := strings.ReplaceAll(told(out.Emitted), string(large), "x")
	if want := "reset 3, x, x, reset 4, x, x, x, x"; got != want {
		t.Errorf("it emitted %s, want %s", got, want)
	}
}
