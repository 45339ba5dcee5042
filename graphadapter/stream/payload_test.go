package stream_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/stream"
)

// one runs a chain of one node "a" and returns its stream.
func one(t *testing.T, a node, modes ...stream.Mode) []string {
	t.Helper()
	return newSession(t, chainOf("a"), map[string]node{"a": a}, modes...).run(input(`{"x":0}`))
}

// TestUpdates: an update has the output channels that a node wrote, null when it wrote none.
func TestUpdates(t *testing.T) {
	for _, c := range []struct {
		name, want string
		writes     []string
	}{
		{"one object", `{"a":{"log":[2],"x":1}}`, []string{"x=1", "log=[2]", "y=3"}},
		{"nothing written", `{"a":null}`, nil},
		{"nothing that callers see", `{"a":null}`, []string{"y=1"}},
		{"null is a value", `{"a":{"x":null}}`, []string{"x=null"}},
		{"a channel written twice splits all keys", `{"a":[{"log":[1]},{"x":1},{"log":[2]}]}`, []string{"log=[1]", "x=1", "log=[2]"}},
		{"an overwrite", `{"a":{"log":{"__overwrite__":[1]}}}`, []string{"log:=[1]"}},
		{"text is not escaped", `{"a":{"x":"<&>"}}`, []string{`x="<&>"`}},
		{"nor is text that was", `{"a":{"x":"<&>\\u003c\u0041\\"}}`, []string{`x="\u003C\u0026\u003e\\u003c\u0041\\"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, []string{"updates " + c.want}, one(t, writing(c.writes...), stream.Updates))
		})
	}
}

// TestTheEntryIsHidden: LangGraph's __start__ is in next and tasks of the first checkpoint, and nowhere else.
func TestTheEntryIsHidden(t *testing.T) {
	lines := one(t, writing("x=1"), stream.Updates, stream.Tasks, stream.Checkpoints)
	var named []string
	for _, l := range lines {
		if strings.Contains(l, "__start__") {
			named = append(named, l)
		}
	}
	assert.Len(t, named, 1)
	assert.Contains(t, named[0], `"next":["__start__"]`)
}

// TestTaskResults: a result has all state channels; several writes to one are marked.
func TestTaskResults(t *testing.T) {
	lines := one(t, writing("log=[1]", "y=1", "log=[2]"), stream.Tasks)
	assert.Equal(t, []string{
		`tasks {"id":"1/a","name":"a","input":{"log":[],"messages":[],"x":0},"triggers":["branch:to:a"]}`,
		`tasks {"id":"1/a","name":"a","error":null,"result":{"log":{"$writes":[[1],[2]]},"y":1},"interrupts":[]}`,
	}, lines)
}

// TestTaskInputs: a node that reads some channels is given those, one with branches too, and a Send's its argument.
func TestTaskInputs(t *testing.T) {
	s := besides(chainOf("a"), "b")
	s.Nodes[0].Reads, s.Nodes[1].Reads = []string{"x"}, []string{"log"}
	s.Branches = []pregel.Branch{{From: "b", Targets: []string{"a"}}}
	s.Joins = []pregel.Join{{From: []string{"a", "b"}, To: "c"}}
	s.Nodes = append(s.Nodes, pregel.NodeSpec{Name: "c", Reads: []string{}})
	lines := newSession(t, s, map[string]node{
		"a": func(task *pregel.Task, _ int) pregel.Outcome {
			if task.IsSend() {
				return pregel.Outcome{}
			}
			return pregel.Outcome{Command: pregel.Command{Goto: []pregel.Target{{Node: "a", Send: true, Arg: pregel.Value(`7`)}}}}
		},
		"b": writing("x=1"), "c": writing(),
	}, stream.Tasks).run(input(`{"x":0}`))
	starts := slices.DeleteFunc(lines, func(l string) bool { return !strings.Contains(l, `"input"`) })
	assert.Equal(t, []string{
		`tasks {"id":"1/a","name":"a","input":{"x":0},"triggers":["branch:to:a"]}`,
		`tasks {"id":"1/b","name":"b","input":{"log":[]},"triggers":["branch:to:b"]}`,
		`tasks {"id":"2/a:0","name":"a","input":7,"triggers":["__pregel_push"]}`,
		`tasks {"id":"2/c","name":"c","input":{},"triggers":["branch:to:c","join:a+b:c"]}`,
	}, starts)
}

// TestInterruptPayloads: a question has its value and its own id, everywhere; the values are those before the superstep.
func TestInterruptPayloads(t *testing.T) {
	lines := one(t, asking("x=1"), stream.Values, stream.Updates, stream.Tasks)
	asked := `[{"value":"why?","id":"q-a"}]`
	assert.Equal(t, []string{
		`updates {"__interrupt__":` + asked + `}`,
		`values {"__interrupt__":` + asked + `,"log":[],"x":0}`,
		`tasks {"id":"1/a","name":"a","error":null,"result":{},"interrupts":` + asked + `}`,
	}, lines[len(lines)-3:])
}

// TestQuestionsHaveTheirSchema, when their answers have a type.
func TestQuestionsHaveTheirSchema(t *testing.T) {
	lines := one(t, func(*pregel.Task, int) pregel.Outcome {
		return pregel.Outcome{Questions: []pregel.Question{{ID: "q", Value: pregel.Null, Schema: pregel.Value(`{"type":"boolean"}`)}}}
	}, stream.Updates)
	assert.Equal(t, []string{`updates {"__interrupt__":[{"value":null,"id":"q","response_schema":{"type":"boolean"}}]}`}, lines)
}

// TestCheckpointPayloads: a checkpoint has all state channels, where it came from and what it leads to.
func TestCheckpointPayloads(t *testing.T) {
	s := newSession(t, chainOf("a"), map[string]node{"a": writing("x=1", "y=2")}, stream.Checkpoints)
	lines := s.run(input(`{"x":0}`))
	var ids []string
	for _, l := range lines {
		_, after, _ := strings.Cut(l, `"checkpoint_id":"`)
		id, _, _ := strings.Cut(after, `"`)
		ids = append(ids, id)
	}
	config := func(id string) string {
		return fmt.Sprintf(`{"configurable":{"thread_id":"t-1","checkpoint_ns":"","checkpoint_id":"%s"}}`, id)
	}
	assert.Equal(t, []string{
		`checkpoints {"config":` + config(ids[0]) + `,"parent_config":null,"values":{"log":[],"messages":[]},` +
			`"metadata":{"source":"input","step":-1,"parents":{}},"next":["__start__"],` +
			`"tasks":[{"id":"0/__start__","name":"__start__","interrupts":[],"state":null}]}`,
		`checkpoints {"config":` + config(ids[1]) + `,"parent_config":` + config(ids[0]) + `,"values":{"log":[],"messages":[],"x":0},` +
			`"metadata":{"source":"loop","step":0,"parents":{}},"next":["a"],` +
			`"tasks":[{"id":"1/a","name":"a","interrupts":[],"state":null}]}`,
		`checkpoints {"config":` + config(ids[2]) + `,"parent_config":` + config(ids[1]) + `,"values":{"log":[],"messages":[],"x":1,"y":2},` +
			`"metadata":{"source":"loop","step":1,"parents":{}},"next":[],"tasks":[]}`,
	}, lines)
}

// TestCheckpointOfARunThatGoesOn: it shows what the run before it left: results, questions and errors.
func TestCheckpointOfARunThatGoesOn(t *testing.T) {
	s := newSession(t, besides(chainOf("a"), "b", "c"),
		map[string]node{"a": asking("x=1"), "b": writing("log=[1]"), "c": writing()}, stream.Checkpoints)
	s.run(input(`{"x":0}`))
	line := s.run(answer("1"))[0]
	assert.Contains(t, line, `"tasks":[{"id":"1/a","name":"a","interrupts":[{"value":"why?","id":"q-a"}],"state":null},`+
		`{"id":"1/b","name":"b","result":{"log":[1]},"interrupts":[],"state":null},`+
		`{"id":"1/c","name":"c","interrupts":[],"state":null}]`)

	s = newSession(t, chainOf("a"), map[string]node{"a": failing("no")}, stream.Checkpoints)
	s.run(input(`{"x":0}`))
	s.nodes["a"] = writing("x=1")
	assert.Contains(t, s.run(pregel.Input{})[0], `"tasks":[{"id":"1/a","name":"a","error":{"type":"Boom","message":"no","graph":"g","node":"a"},"state":null}]`)
}

// TestCheckpointsInExitMode: only the last one is stored, so each has the one that the run began at as its parent.
func TestCheckpointsInExitMode(t *testing.T) {
	s := newSession(t, chainOf("a", "b"), map[string]node{"a": writing("x=1"), "b": writing("x=2")}, stream.Checkpoints)
	s.durability = graphadapter.DurabilityExit
	for _, l := range s.run(input(`{"x":0}`)) {
		assert.Contains(t, l, `"parent_config":null`)
	}
	head := s.thread.Head.Checkpoint.ID
	for _, l := range s.run(input(`{"x":0}`)) {
		assert.Contains(t, l, `"parent_config":{"configurable":{"thread_id":"t-1","checkpoint_ns":"","checkpoint_id":"`+head+`"}}`)
	}
}

// TestDebug: debug is checkpoints and tasks in a wrapper with superstep, time and kind.
func TestDebug(t *testing.T) {
	lines := one(t, writing("x=1"), stream.Tasks, stream.Checkpoints, stream.Debug)
	kind := map[string]string{}
	for i := 0; i < len(lines); i += 2 {
		_, payload, _ := strings.Cut(lines[i], " ")
		step, rest, _ := strings.Cut(strings.TrimPrefix(lines[i+1], `debug {"step":`), ",")
		name, got, _ := strings.Cut(strings.TrimPrefix(rest, `"timestamp":"2026-01-02T12:00:00Z","type":"`), `","payload":`)
		kind[name] += step + " "
		assert.Equal(t, payload+"}", got)
	}
	assert.Equal(t, map[string]string{"checkpoint": "-1 0 1 ", "task": "1 ", "task_result": "1 "}, kind)
}

// subgraph is a graph whose node "sub" runs a graph of that memory, with one node "in".
func subgraph(memory pregel.Memory) *pregel.Spec {
	s := chainOf("sub")
	s.Nodes[0].Subgraph = "inner"
	inner := chainOf("in")
	inner.Name, inner.Memory = "inner", memory
	s.Subgraphs = map[string]*pregel.Spec{"inner": inner}
	return s
}

// TestSubgraphs: their chunks come with their namespace, between the start and the end of their node's task, and only
// when they are asked for.
func TestSubgraphs(t *testing.T) {
	s := newSession(t, subgraph(""), map[string]node{"in": writing("x=1")}, all...)
	assert.Equal(t, "C V C T U R V C", outline(s.run(input(`{"x":0}`))))

	s = newSession(t, subgraph(""), map[string]node{"in": writing("x=1")}, stream.Updates, stream.Checkpoints)
	s.subgraphs = true
	lines := s.run(input(`{"x":0}`))
	var modes []string
	for _, l := range lines {
		mode, _, _ := strings.Cut(l, " {")
		modes = append(modes, mode)
	}
	const ns = "1/sub "
	assert.Equal(t, []string{"checkpoints", "checkpoints", ns + "checkpoints", ns + "checkpoints", ns + "updates", ns + "checkpoints",
		"updates", "checkpoints"}, modes)
	assert.Contains(t, lines[1], `"state":{"configurable":{"thread_id":"t-1","checkpoint_ns":"1/sub"}}`)
	_, after, _ := strings.Cut(lines[1], `"checkpoint_id":"`)
	outer, _, _ := strings.Cut(after, `"`)
	assert.Contains(t, lines[2], `"parents":{"":"`+outer+`"}`)
}

// TestASubgraphThatKeepsNothing has no checkpoints to show.
func TestASubgraphThatKeepsNothing(t *testing.T) {
	s := newSession(t, subgraph(pregel.MemoryNone), map[string]node{"in": writing("x=1")}, stream.Checkpoints)
	s.subgraphs = true
	for _, l := range s.run(input(`{"x":0}`)) {
		assert.True(t, strings.HasPrefix(l, "checkpoints {"), l)
		assert.NotContains(t, l, `"checkpoint_ns":"1/sub"`)
	}
}

// TestAQuestionInsideASubgraph is asked by the inner node, and then by the node that runs the subgraph.
func TestAQuestionInsideASubgraph(t *testing.T) {
	s := newSession(t, subgraph(""), map[string]node{"in": asking("x=1")}, stream.Updates)
	s.subgraphs = true
	asked := `updates {"__interrupt__":[{"value":"why?","id":"q-in"}]}`
	assert.Equal(t, []string{"1/sub " + asked, asked}, s.run(input(`{"x":0}`)))
}
