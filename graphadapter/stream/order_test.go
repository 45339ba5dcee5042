package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/stream"
)

var all = []stream.Mode{stream.Values, stream.Updates, stream.Tasks, stream.Checkpoints}

// outline is each line's mode, with what tells its chunks apart.
func outline(lines []string) string {
	var out []string
	for _, l := range lines {
		mode, data, _ := strings.Cut(l, " {")
		switch {
		case mode == "tasks" && strings.Contains(data, `"input":`):
			mode = "T"
		case mode == "tasks":
			mode = "R"
		case mode == "checkpoints":
			mode = "C"
		case mode == "values" && strings.Contains(data, `"__interrupt__"`):
			mode = "V!"
		case mode == "values":
			mode = "V"
		case mode == "updates" && strings.Contains(data, `"cached":true`):
			mode = "U*"
		case mode == "updates" && strings.Contains(data, `"__interrupt__"`):
			mode = "U!"
		case mode == "updates":
			mode = "U"
		}
		out = append(out, mode)
	}
	return strings.Join(out, " ")
}

// TestOrder: a superstep is a checkpoint, the starts of its tasks, each task's update and end, then the values; the end
// is a checkpoint that leads nowhere.
func TestOrder(t *testing.T) {
	s := newSession(t, besides(chainOf("a"), "b"), map[string]node{"a": writing("x=1"), "b": writing("log=[1]")}, all...)
	assert.Equal(t, "C V C T T U R U R V C", outline(s.run(input(`{"log":[0]}`))))
}

// TestOrderOfAnInterrupt: the question comes as an update, then with the values that the task found, then as the
// task's end; finished siblings show in the values at the end. The run that goes on begins with the values.
func TestOrderOfAnInterrupt(t *testing.T) {
	s := newSession(t, besides(chainOf("a"), "b"), map[string]node{"a": asking("x=1"), "b": writing("log=[1]")}, all...)
	assert.Equal(t, "C V C T T U! V! R U R V", outline(s.run(input(`{"log":[0]}`))))
	assert.Equal(t, "V C T T U* U R V C", outline(s.run(answer("1"))))
}

// TestOrderOfABreakpoint: nothing starts; the update names no question.
func TestOrderOfABreakpoint(t *testing.T) {
	s := newSession(t, chainOf("a", "b"), map[string]node{"a": writing("x=1"), "b": writing("x=2")}, all...)
	s.options.InterruptBefore = []string{"b"}
	first := s.run(input(`{"log":[0]}`))
	assert.Equal(t, "C V C T U R V C U!", outline(first))
	assert.Equal(t, `updates {"__interrupt__":[]}`, first[len(first)-1])
	assert.Equal(t, "V C T U R V C", outline(s.run(pregel.Input{})))
}

// TestOrderOfABreakpointAfter: the checkpoint at which the run stops is shown before the stop, though nothing of it runs.
func TestOrderOfABreakpointAfter(t *testing.T) {
	s := newSession(t, chainOf("a", "b"), map[string]node{"a": writing("x=1"), "b": writing("x=2")}, all...)
	s.options.InterruptAfter = []string{"a"}
	assert.Equal(t, "C V C T U R V C U!", outline(s.run(input(`{"log":[0]}`))))
}

// TestOrderOfAFailure: the failed task ends with its error and without an update, and the superstep shows no values.
func TestOrderOfAFailure(t *testing.T) {
	s := newSession(t, besides(chainOf("a"), "b"), map[string]node{"a": writing("x=1"), "b": failing("no")}, all...)
	lines := s.run(input(`{"log":[0]}`))
	assert.Equal(t, "C V C T T U R R", outline(lines))
	assert.Equal(t, `tasks {"id":"1/b","name":"b","error":{"type":"Boom","message":"no","graph":"g","node":"b"},`+
		`"result":{},"interrupts":[]}`, lines[len(lines)-1])
	s.nodes["b"] = writing("y=1")
	assert.Equal(t, "V C T T U* U R V C", outline(s.run(pregel.Input{})))
}

// TestOrderOfACachedResult: a result from a cache is an update that says so, without an end of the task.
func TestOrderOfACachedResult(t *testing.T) {
	s := newSession(t, chainOf("a"), map[string]node{"a": func(*pregel.Task, int) pregel.Outcome {
		return pregel.Outcome{Command: command("x=1"), Cached: true}
	}}, all...)
	assert.Equal(t, "C V C T U* V C", outline(s.run(input(`{"log":[0]}`))))
}

// TestOneModeAtATimeIsTheSame: a mode's chunks are the same whatever other modes are asked for.
func TestOneModeAtATimeIsTheSame(t *testing.T) {
	every := append([]stream.Mode{stream.Custom, stream.Messages, stream.Debug}, all...)
	nodes := func() map[string]node {
		return map[string]node{"a": func(*pregel.Task, int) pregel.Outcome {
			return pregel.Outcome{Command: command("x=1", `messages=[{"id":"m","role":"user"}]`),
				Emitted: []pregel.Emission{{Value: pregel.Value("1")}, {Kind: pregel.EmissionReset, Attempt: 2}, {Value: pregel.Value("2")}}}
		}, "b": asking("x=2")}
	}
	together := newSession(t, chainOf("a", "b"), nodes(), every...).run(input(`{"log":[0]}`))
	for _, mode := range every {
		var want []string
		for _, l := range together {
			emits := mode == stream.Custom || mode == stream.Messages
			if strings.HasPrefix(l, string(mode)+" ") || emits && strings.HasPrefix(l, "reset ") {
				want = append(want, l)
			}
		}
		assert.NotEmpty(t, want, mode)
		assert.Equal(t, want, newSession(t, chainOf("a", "b"), nodes(), mode).run(input(`{"log":[0]}`)), mode)
	}
}
