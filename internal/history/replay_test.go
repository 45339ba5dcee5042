package history_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/thread"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// approvals is a chain into two questions side by side and a node after them.
func approvals() *graphadapter.Graph {
	return graph(map[string]graphadapter.Node{
		"draft": says("draft"), "boss": asks("boss"), "legal": asks("legal"), "file": says("file"),
	}, []string{"draft", "boss", "legal", "file"},
		[2]string{pregel.Start, "draft"}, [2]string{"draft", "boss"}, [2]string{"draft", "legal"}, [2]string{"boss", "file"}, [2]string{"legal", "file"})
}

// checkpoint is what two ways of reading a run's past have to agree on.
type checkpoint struct {
	protocol.Line
	Values map[string]pregel.Value
}

// replayed reads the run's checkpoints by replaying it.
func (r *rig) replayed(runID string) []checkpoint {
	r.t.Helper()
	program, err := r.graph.Program()
	if err != nil {
		r.t.Fatal(err)
	}
	var out []checkpoint
	err = r.tail.Replay(r.ctx, r.thread, runID, workflows.NewReader(r.graph, &seen{program: program, checkpoints: &out}))
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// seen notes the root graph's checkpoints, and everything that it was told of as lines of text.
type seen struct {
	program     *pregel.Program
	checkpoints *[]checkpoint
	told        []string
}

func (s *seen) note(at int64, format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf("%d ", at)+fmt.Sprintf(format, args...))
}

func (s *seen) Began(at int64, _ *pregel.Program, t *pregel.Thread, d graphadapter.Durability) {
	s.note(at, "began%s", d)
}

func (s *seen) Continued(at int64, _ *pregel.Program, _ *pregel.Thread, d graphadapter.Durability, status pregel.Status, base string) {
	s.note(at, "continued%s %d %s", d, status, base)
}

func (s *seen) Ended(at int64, status pregel.Status, _ *pregel.Thread) {
	s.note(at, "ended %d", status)
}

func (s *seen) Edited(at int64, namespace string, r *pregel.Record) {
	s.note(at, "edited %s %s", namespace, r.Checkpoint.ID)
}

func (s *seen) Happened(at int64, e pregel.Event) {
	what := string(e.Kind)
	if e.Task != nil {
		what += " " + e.Task.Path
	}
	s.note(at, "%s", what)
	if e.Kind != pregel.EventCheckpoint || e.Namespace != "" || s.checkpoints == nil {
		return
	}
	ran, wrote := s.program.Made(e.Checkpoint)
	c := e.Checkpoint.Checkpoint
	shown, err := s.program.Snapshot(pregel.NewThread(), e.Checkpoint, false)
	if err != nil {
		return
	}
	*s.checkpoints = append(*s.checkpoints, checkpoint{protocol.Line{Step: c.Step, Checkpoint: c.ID, Parent: c.Parent, Source: c.Source,
		Ran: ran, Wrote: wrote, Next: s.program.Next(e.Checkpoint)}, shown.Values})
}

// agree compares the replayed past with what the run itself says now.
func (r *rig) agree(runID string, min int) {
	r.t.Helper()
	got := r.replayed(runID)
	if len(got) < min {
		r.t.Fatalf("the replay found %d checkpoints, want at least %d", len(got), min)
	}
	var lines []protocol.Line
	v, err := r.temporal.QueryWorkflow(r.ctx, r.thread, runID, protocol.QueryHistory)
	if err == nil {
		err = v.Get(&lines)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	replayed := make([]protocol.Line, len(got))
	for i := range got {
		replayed[i] = got[i].Line
	}
	// A run that continues a thread lists the checkpoints of the runs before it as well.
	lines = lines[len(lines)-len(replayed):]
	for i := range lines {
		if lines[i].Run != runID {
			r.t.Errorf("line %d is said to be of run %q", i, lines[i].Run)
		}
		if lines[i].At == 0 {
			r.t.Errorf("line %d has no time", i)
		}
		lines[i].Run, lines[i].At = "", 0 // which the run adds to what its engine tells
	}
	if got, want := text(r.t, replayed), text(r.t, lines); got != want {
		r.t.Errorf("replayed, the run's checkpoints are\n%s, it says they are\n%s", got, want)
	}
	state, err := r.State(r.ctx, thread.StateRequest{Thread: r.thread})
	if err != nil {
		r.t.Fatal(err)
	}
	last := got[len(got)-1]
	if state.Checkpoint != last.Checkpoint || state.Step != last.Step {
		r.t.Errorf("the replay ends at %s, step %d; the run stands at %s, step %d", last.Checkpoint, last.Step, state.Checkpoint, state.Step)
	}
	if len(state.Questions) == 0 && text(r.t, last.Values) != text(r.t, state.Values) {
		r.t.Errorf("the replayed values are %s, the run's %s", text(r.t, last.Values), text(r.t, state.Values))
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestTheReaderSeesWhatTheRunSaw: while a run waits, after a signal, after an update and after its end, the past read
// by replaying is the past that the run itself knows.
func TestTheReaderSeesWhatTheRunSaw(t *testing.T) {
	t.Parallel()
	r := newRig(t, approvals())
	runID := r.begin(`{"log":["in"]}`)
	waiting := r.rest()
	if len(waiting.Questions) != 2 {
		t.Fatalf("the run asks %+v", waiting.Questions)
	}
	r.agree(runID, 3)
	bySignal, byUpdate := waiting.Questions[0], waiting.Questions[1]
	if _, err := r.Resume(r.ctx, thread.ResumeRequest{Thread: r.thread, Question: bySignal.ID, Value: []byte(`"signal"`), Signal: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(r.ctx, thread.ResumeRequest{Thread: r.thread, Question: byUpdate.ID, Value: []byte(`"update"`)}); err != nil {
		t.Fatal(err)
	}
	done := r.rest()
	if done.Status != thread.StatusFinished {
		t.Fatalf("the run is %s", done.Status)
	}
	r.agree(runID, 5)
	again := r.begin(`{"log":["again"]}`)
	r.rest()
	r.agree(again, 3)
	r.inMemory(append(r.replayed(runID), r.replayed(again)...))
}

// inMemory holds the values of each checkpoint to those that the same thread has in memory.
func (r *rig) inMemory(past []checkpoint) {
	r.t.Helper()
	thread := taskrun.NewMemory().Thread(r.graph, r.thread)
	in := pregel.Input{Value: pregel.Value(`{"log":["in"]}`)}
	result, err := thread.Run(r.ctx, in, graphadapter.RunOptions{})
	if err == nil {
		in = pregel.Input{Resume: &pregel.Resume{ByID: map[string]pregel.Value{
			result.Questions[0].ID: pregel.Value(`"signal"`), result.Questions[1].ID: pregel.Value(`"update"`)}}}
		_, err = thread.Run(r.ctx, in, graphadapter.RunOptions{})
	}
	if err == nil {
		_, err = thread.Run(r.ctx, pregel.Input{Value: pregel.Value(`{"log":["again"]}`)}, graphadapter.RunOptions{})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	snapshots, err := thread.History(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Reverse(snapshots)
	if len(snapshots) != len(past) {
		r.t.Fatalf("in memory there are %d checkpoints, replayed %d", len(snapshots), len(past))
	}
	for i, s := range snapshots {
		if s.Checkpoint != past[i].Checkpoint || text(r.t, s.Values) != text(r.t, past[i].Values) {
			r.t.Errorf("checkpoint %d is %s %s, in memory %s %s", i, past[i].Checkpoint, text(r.t, past[i].Values), s.Checkpoint, text(r.t, s.Values))
		}
	}
}
