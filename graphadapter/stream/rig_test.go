package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/stream"
)

// node is what a task of that node comes back with when it runs for the n-th time, from 0.
type node func(t *pregel.Task, n int) pregel.Outcome

// session drives one thread with tasks that end in the order in which they were handed out.
type session struct {
	t          *testing.T
	program    *pregel.Program
	thread     *pregel.Thread
	nodes      map[string]node
	runs       map[string]int
	modes      []stream.Mode
	subgraphs  bool
	durability graphadapter.Durability
	options    pregel.Options
}

func newSession(t *testing.T, spec *pregel.Spec, nodes map[string]node, modes ...stream.Mode) *session {
	t.Helper()
	version(spec)
	program, err := pregel.Compile(spec, nil)
	require.NoError(t, err)
	return &session{t: t, program: program, thread: pregel.NewThread(), nodes: nodes, runs: map[string]int{}, modes: modes,
		options: pregel.Options{RecursionLimit: 25}}
}

func version(spec *pregel.Spec) {
	spec.Version = pregel.SpecVersion
	for _, sub := range spec.Subgraphs {
		version(sub)
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// run drives one invocation and returns its stream, one line a chunk.
func (s *session) run(in pregel.Input) []string {
	s.t.Helper()
	shaper := stream.New("t-1", s.modes, s.subgraphs)
	shaper.Began(s.program, s.durability)
	var lines []string
	loop, err := s.program.Start(s.thread, in, s.options, false, func(e pregel.Event) {
		chunks, err := shaper.Shape(e, noon)
		require.NoError(s.t, err)
		slot := -1
		for _, c := range chunks {
			require.Greater(s.t, c.Slot, slot, "slots grow within an event")
			slot = c.Slot
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s", c.Namespace, c.Mode))+" "+string(c.Data))
		}
	})
	require.NoError(s.t, err)
	for ready := loop.Ready(); len(ready) > 0; ready = append(ready[1:], loop.Ready()...) {
		task := ready[0]
		n := s.runs[task.Node]
		s.runs[task.Node]++
		loop.Deliver(task, s.nodes[task.Node](task, n))
	}
	return lines
}

func input(text string) pregel.Input { return pregel.Input{Value: pregel.Value(text)} }

func answer(text string) pregel.Input {
	return pregel.Input{Resume: &pregel.Resume{Scalar: pregel.Value(text)}}
}

// writing returns a node that writes, "channel=json" each.
func writing(writes ...string) node {
	return func(*pregel.Task, int) pregel.Outcome { return pregel.Outcome{Command: command(writes...)} }
}

func command(writes ...string) pregel.Command {
	var c pregel.Command
	for _, w := range writes {
		channel, value, overwrite := strings.Cut(w, ":=")
		if !overwrite {
			channel, value, _ = strings.Cut(w, "=")
		}
		c.Update = append(c.Update, pregel.Write{Channel: channel, Value: pregel.Value(value), Overwrite: overwrite})
	}
	return c
}

func failing(message string) node {
	return func(t *pregel.Task, _ int) pregel.Outcome {
		return pregel.Outcome{Error: &pregel.NodeError{Type: "Boom", Message: message, Graph: "g", Node: t.Node}}
	}
}

// asking returns a node that asks once and then writes.
func asking(writes ...string) node {
	return func(t *pregel.Task, _ int) pregel.Outcome {
		if len(t.Answers) == 0 {
			return pregel.Outcome{Questions: []pregel.Question{{ID: "q-" + t.Node, Value: pregel.Value(`"why?"`)}}}
		}
		return pregel.Outcome{Command: command(writes...)}
	}
}

// channels are last-value channels x and y, a list log and messages.
func channels() []pregel.ChannelSpec {
	return []pregel.ChannelSpec{
		{Name: "x", Kind: pregel.KindLast}, {Name: "y", Kind: pregel.KindLast},
		{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"},
		{Name: "messages", Kind: pregel.KindReduce, Reducer: "messages/v1"},
	}
}

// chainOf is a graph of nodes one after the other, over channels x and log and what is shown of them.
func chainOf(names ...string) *pregel.Spec {
	s := &pregel.Spec{Name: "g", Channels: channels(), Output: []string{"x", "log"}}
	last := pregel.Start
	for _, n := range names {
		s.Nodes = append(s.Nodes, pregel.NodeSpec{Name: n})
		s.Edges = append(s.Edges, pregel.Edge{From: last, To: n})
		last = n
	}
	return s
}

// besides adds nodes that run next to the first ones.
func besides(s *pregel.Spec, names ...string) *pregel.Spec {
	for _, n := range names {
		s.Nodes = append(s.Nodes, pregel.NodeSpec{Name: n})
		s.Edges = append(s.Edges, pregel.Edge{From: pregel.Start, To: n})
	}
	return s
}
