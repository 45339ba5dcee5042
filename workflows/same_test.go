package workflows_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// scenario is a thread's whole life: a graph, and its input run after run.
type scenario struct {
	name   string
	graph  func() *graphadapter.Graph
	inputs []string
	// fails says that the last run fails the first time and is then continued.
	fails bool
	// continueAt is when its runs are continued as new ones.
	continueAt *protocol.ContinueAt
	// mode is how its runs store what they do; the zero value is superstep by superstep.
	mode mode
	// budget is the thread's, from its first run on; nil for none.
	budget *pregel.Amounts
}

// mode is how a run stores what it does.
type mode struct {
	fused      bool
	durability graphadapter.Durability
}

// put makes a run's input ask for the mode.
func (m mode) put(in *protocol.GraphInput) {
	in.Fused, in.Durability = m.fused, m.durability
}

var scenarios = []scenario{
	{name: "chain", graph: chainGraph, inputs: []string{`{"log":["in"]}`}},
	{name: "again", graph: chainGraph, inputs: []string{`{"log":["once"]}`, `{"log":["again"]}`}},
	{name: "fan-out", graph: fanOutGraph, inputs: []string{`{"log":["in"]}`}},
	{name: "questions", graph: approvalGraph, inputs: []string{`{}`}},
	{name: "failed", graph: failingGraph, inputs: []string{`{}`}, fails: true},
	{name: "retried", graph: retryGraph, inputs: []string{`{}`}},
	{name: "nested", graph: nestedGraph, inputs: []string{`{"log":["in"]}`, `{}`}},
	{name: "handled", graph: handledGraph, inputs: []string{`{}`}},
	{name: "metered", graph: nestedGraph, inputs: []string{`{"log":["in"]}`, `{}`}, budget: &pregel.Amounts{Supersteps: 1}},
	{name: "reducing", graph: func() *graphadapter.Graph { return reducingGraph(longer) }, inputs: []string{`{}`}},
}

// answerTo is what everybody answers to a question.
func answerTo(q pregel.Question) pregel.Value {
	if strings.HasPrefix(q.ID, pregel.BudgetNode) {
		return pregel.Value(`{"supersteps":1}`)
	}
	return pregel.Value(fmt.Sprintf("%q", "yes to "+strings.Trim(string(q.Value), `"`)))
}

// past is what can be compared of a thread: how it ended and how it got there.
type earlier struct {
	output string
	lines  []protocol.Line
}

// TestSameAsMemory: a thread on the server comes to the same end by the same checkpoints, ids and digests included, as
// in memory. Answers come by update and by signal in turn.
func TestSameAsMemory(t *testing.T) {
	for _, s := range append(fusedScenarios(), scenarios...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(s.graph())
			thread := testserver.Queue(t)
			s.sameAsMemory(r, thread)
		})
	}
}

// sameAsMemory lives the thread's life on the server and in memory, and compares.
func (s scenario) sameAsMemory(r *rig, thread string) {
	r.t.Helper()
	got, want := s.onServer(r, thread), s.inMemory(r.t, thread)
	if got.output != want.output {
		r.t.Errorf("the output is\n%s, in memory it is\n%s", got.output, want.output)
	}
	if s.mode.durability == graphadapter.DurabilityExit {
		want.lines = atEnds(want.lines, got.lines)
	}
	if got, want := asJSON(r.t, got.lines), asJSON(r.t, want.lines); got != want {
		r.t.Errorf("the checkpoints are\n%s, in memory they are\n%s", got, want)
	}
}

// atEnds are the lines of a run that keeps a checkpoint only where it stands still, as some does in kept: the last one, and
// of those before the ones that it has.
func atEnds(all, kept []protocol.Line) (out []protocol.Line) {
	parent := ""
	for i, line := range all {
		if i < len(all)-1 && !slices.ContainsFunc(kept, func(k protocol.Line) bool { return k.Checkpoint == line.Checkpoint }) {
			continue
		}
		line.Parent, parent = parent, line.Checkpoint
		out = append(out, line)
	}
	return out
}

// uncachedEnv tells the test process to keep no workflow between tasks.
const uncachedEnv = "SUPERSTEP_TEST_UNCACHED"

// TestSameAsMemoryWithoutCache runs that again in a process that keeps no workflow between tasks, so that every task
// replays the run from its beginning. The cache is the process's, so it takes a process of its own.
func TestSameAsMemoryWithoutCache(t *testing.T) {
	if os.Getenv(uncachedEnv) != "" {
		t.Skip("this is that process")
	}
	uncached(t, "^(TestSameAsMemory|TestContinuedSameAsMemory|TestPassedOverSameAsMemory)$")
}

// uncached runs tests in a process that keeps no workflow between tasks.
func uncached(t *testing.T, tests string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tests, "-test.timeout", "15m", "-test.v")
	cmd.Env = append(os.Environ(), uncachedEnv+"=1", testserver.EnvAddress+"="+testserver.Address(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("without a cache: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("it ran nothing:\n%s", out)
	}
}

// onServer lives the thread's life on the server.
func (s scenario) onServer(r *rig, thread string) earlier {
	r.t.Helper()
	in := protocol.GraphInput{Graph: s.graph().Spec.Name}
	s.mode.put(&in)
	in.Options.Budget = s.budget
	var result *protocol.GraphResult
	for i, input := range s.inputs {
		if i > 0 {
			in = next(in.Graph, result.Closing)
			s.mode.put(&in)
		}
		in.Input, in.ContinueAt = protocol.Input{Value: pregel.Value(input)}, s.continueAt
		run := r.start(thread, in)
		if s.fails && i == len(s.inputs)-1 {
			in = next(in.Graph, closingOf(r.t, run.Get(r.ctx, nil)))
			in.Suspect, in.ContinueAt = true, s.continueAt
			s.mode.put(&in)
			run = r.start(thread, in)
		}
		r.answerAll(thread, run.GetRunID())
		result = r.finished(run)
	}
	return earlier{asJSON(r.t, result.Output), r.lines(thread)}
}

// next is the input of a run that continues a thread from what its last run left.
func next(graph string, left protocol.Closing) protocol.GraphInput {
	return protocol.GraphInput{Graph: graph, Spec: left.Spec, State: left.State, Life: left.Life, Lines: left.Lines}
}

// answerAll answers a run's questions until it has ended, by update and by signal in turn.
func (r *rig) answerAll(thread, runID string) {
	r.t.Helper()
	given := map[string]int{}
	await(r.t, "the run's end", func() bool {
		s, err := r.state(thread)
		if err != nil {
			return false
		}
		for _, q := range s.Questions {
			// A query may be ahead of the run: an answer that comes before the question is refused, and sent again.
			refused := 0
			for _, n := range s.Refused {
				if n.Question == q.ID {
					refused++
				}
			}
			if given[q.ID] > refused {
				continue
			}
			given[q.ID]++
			req := protocol.ResumeRequest{ID: "r-" + q.ID, Question: q.ID, Value: answerTo(q.Question), By: "somebody"}
			if len(given)%2 == 0 {
				r.signal(thread, req)
			} else if _, err := r.update(thread, req); errorKind(err) == protocol.ErrTypeUnknownQuestion {
				given[q.ID]-- // nothing is kept of a refused update
			} else if err != nil {
				r.t.Fatal(err)
			}
		}
		return s.Status == protocol.StatusFinished
	}, func() any { s, err := r.state(thread); return []any{s, err, runID} })
}

// inMemory lives the same life in memory.
func (s scenario) inMemory(t *testing.T, thread string) earlier {
	t.Helper()
	g := s.graph()
	program, err := g.Program()
	if err != nil {
		t.Fatal(err)
	}
	var lines []protocol.Line
	opts := graphadapter.RunOptions{Observer: func(e pregel.Event) {
		if e.Kind == pregel.EventCheckpoint && e.Namespace == "" {
			lines = append(lines, lineOf(program, e.Checkpoint))
		}
	}}
	opts.Budget = s.budget
	memory := taskrun.NewMemory().Thread(g, thread)
	var result graphadapter.RunResult
	for _, input := range s.inputs {
		in := pregel.Input{Value: pregel.Value(input)}
		for {
			result, err = memory.Run(context.Background(), in, opts)
			opts.Budget = nil // the thread has it
			if err == nil && len(result.Questions) == 0 {
				break
			}
			in = pregel.Input{}
			if err == nil {
				in.Resume = &pregel.Resume{}
			} else if !s.fails {
				t.Fatal(err)
			}
			for _, q := range slices.Backward(result.Questions) { // in whatever order
				in.Resume.Answers = append(in.Resume.Answers, pregel.Answer{QuestionID: q.ID, Value: answerTo(q), By: "somebody"})
			}
		}
	}
	return earlier{asJSON(t, result.Output), lines}
}

func lineOf(p *pregel.Program, r *pregel.Record) protocol.Line {
	ran, wrote := p.Made(r)
	c := r.Checkpoint
	return protocol.Line{Step: c.Step, Checkpoint: c.ID, Parent: c.Parent, Source: c.Source, Ran: ran, Wrote: wrote, Next: p.Next(r)}
}
