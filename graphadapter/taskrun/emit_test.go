package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
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

// TestRepeatedAttemptsEmitInOrder: each one's values and messages behind its reset, to listeners and in the outcome.
func TestRepeatedAttemptsEmitInOrder(t *testing.T) {
	g := oneNode(calling(func(_ context.Context, task *TaskRun) error {
		n := task.Info().Attempt
		if err := errors.Join(task.Emit(pregel.Value(fmt.Sprint(n))), task.EmitMessage(pregel.Value(fmt.Sprint(n*10)))); err != nil {
			return err
		}
		if n < 3 {
			return errors.New("not yet")
		}
		return nil
	}))
	pay := g.Nodes["pay"]
	pay.Retry = []graphadapter.RetryPolicy{{InitialInterval: -1, NoJitter: true}}
	g.Nodes["pay"] = pay
	var live []pregel.Emission
	out, _ := RunTask(t.Context(), g, payTask(), Env{Journal: mustJournal(t, nil), Emit: func(e pregel.Emission) { live = append(live, e) }})
	const want = "1, (10), reset 2, 2, (20), reset 3, 3, (30)"
	if told(out.Emitted) != want || told(live) != want || out.Error != nil {
		t.Errorf("the outcome has %s, listeners heard %s, the task ended with %v", told(out.Emitted), told(live), out.Error)
	}
}

// TestMessagesShareTheBounds of what one attempt may emit.
func TestMessagesShareTheBounds(t *testing.T) {
	half := pregel.Value(`"` + strings.Repeat("x", MaxEmittedValue/2) + `"`)
	_, err := attemptOf(t, oneNode(calling(func(_ context.Context, task *TaskRun) error {
		for range MaxEmittedTotal / MaxEmittedValue {
			if err := errors.Join(task.Emit(half), task.EmitMessage(half)); err != nil {
				return err
			}
		}
		return nil
	})), Env{})
	if !is[*graphadapter.EmitLimitError](err) {
		t.Errorf("got %v", err)
	}
}

func TestKeepEmitted(t *testing.T) {
	value := func(s string) pregel.Emission { return pregel.Emission{Value: pregel.Value(s)} }
	reset := func(n int) pregel.Emission { return pregel.Emission{Kind: pregel.EmissionReset, Attempt: n} }
	all := []pregel.Emission{value("1"), value("2"), reset(2), value("3"), value("4"), reset(3), value("5")}
	one := emittedSize(value("1")) // a reset is a byte less
	for room, want := range map[int]string{
		-1: "reset 3", 0: "reset 3", 1: "reset 3, 5", 2: "reset 3, 5", 3: "reset 2, 4, reset 3, 5",
		4: "reset 2, 3, 4, reset 3, 5", 5: "reset 2, 3, 4, reset 3, 5", 6: "2, reset 2, 3, 4, reset 3, 5",
		7: "1, 2, reset 2, 3, 4, reset 3, 5",
	} {
		if got := told(KeepEmitted(all, one*(room+1))); got != want {
			t.Errorf("room for %d keeps %s, want %s", room, got, want)
		}
	}
	if got := KeepEmitted(nil, 1000); len(got) != 0 {
		t.Errorf("of nothing it kept %v", got)
	}
	if !reflect.DeepEqual(all, []pregel.Emission{value("1"), value("2"), reset(2), value("3"), value("4"), reset(3), value("5")}) {
		t.Error("it changed what it was given")
	}
}

// TestEmittedSizeIsABound of what JSON makes of an emission.
func TestEmittedSizeIsABound(t *testing.T) {
	for _, e := range []pregel.Emission{
		{Value: pregel.Value(`"<<>>&& \u2028\u2029 ä"`)}, {Kind: pregel.EmissionMessage, Value: pregel.Value(`{"id":"1"}`)},
		{Kind: pregel.EmissionReset, Attempt: 1 << 62}, {Value: pregel.Value("\"\u2028\u2029<\"")},
	} {
		stored, err := json.Marshal(e)
		if err != nil || len(stored)+1 > emittedSize(e) {
			t.Errorf("%s has %d bytes, bound %d, %v", stored, len(stored), emittedSize(e), err)
		}
	}
}

// TestACalledGraphEmitsForItsTask, and asks for drains for it.
func TestACalledGraphEmitsForItsTask(t *testing.T) {
	inner := oneNode(calling(func(_ context.Context, task *TaskRun) error {
		task.Drain("maintenance")
		return errors.Join(task.Emit(task.RunContext()), task.EmitMessage(pregel.Value(`"inner"`)))
	}))
	outer := oneNode(calling(func(ctx context.Context, task *TaskRun) error {
		if err := task.Emit(pregel.Value(`"outer"`)); err != nil {
			return err
		}
		_, err := InvokeNested(ctx, inner, pregel.Value(`{"amount":1}`))
		return err
	}))
	out, err := attemptOf(t, outer, Env{Context: pregel.Value(`{"tenant":"acme"}`)})
	if err != nil || told(out.Emitted) != `"outer", {"tenant":"acme"}, ("inner")` || out.Drain != "maintenance" {
		t.Errorf("the task came back with %s and drain %q, %v", told(out.Emitted), out.Drain, err)
	}
}
