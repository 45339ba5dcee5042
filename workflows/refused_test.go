package workflows_test

import (
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestARunThatIsRefusedAtOnceLosesNothing: an input that the engine refuses leaves the thread's state as it was in the
// run's last event, and its answers count for nothing; from there the thread goes on.
func TestARunThatIsRefusedAtOnceLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := graph("refused", map[string]graphadapter.Node{"a": asking("a", "a?"), "b": asking("b", "b?")}, []string{"a", "b"},
		to(pregel.Start, "a"), to(pregel.Start, "b"))
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "refused", Input: protocol.Input{Value: pregel.Value(`{}`)}})
	open := r.until(thread, "both questions", func(s protocol.State) bool { return len(s.Questions) == 2 }).Questions
	if err := r.client.CancelWorkflow(r.ctx, thread, ""); err != nil {
		t.Fatal(err)
	}
	before := closingOf(t, run.Get(r.ctx, nil))
	scalar, command := &pregel.Resume{Scalar: pregel.Value(`"which?"`)}, &pregel.Command{Update: writes("log", "no list").Update}
	for name, input := range map[string]protocol.Input{"an ambiguous answer": {Resume: scalar}, "a command of the wrong type": {Control: command}} {
		in := next("refused", before)
		in.Input = input
		left := closingOf(t, r.start(thread, in).Get(r.ctx, nil))
		if left.Failure == nil {
			t.Fatalf("%s was taken", name)
		}
		if string(left.State) != string(before.State) || left.Step != before.Step {
			t.Errorf("%s changed the state from\n%s\nto\n%s", name, before.State, left.State)
		}
		if len(left.Life.Answered) != 0 {
			t.Errorf("%s left the answers %+v, which nobody took", name, left.Life.Answered)
		}
		if asJSON(t, left.Lines) != asJSON(t, before.Lines) {
			t.Errorf("%s left the checkpoints %s, before %s", name, asJSON(t, left.Lines), asJSON(t, before.Lines))
		}
	}
	in := next("refused", before)
	in.Input = protocol.Input{Resume: &pregel.Resume{ByID: map[string]pregel.Value{open[0].ID: pregel.Value(`"yes"`), open[1].ID: pregel.Value(`"no"`)}}}
	if log := string(r.finished(r.start(thread, in)).Output["log"]); log != `["a","\"yes\"","b","\"no\""]` {
		t.Errorf("the thread ended with %s", log)
	}
}
