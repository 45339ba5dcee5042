package workflows_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestACancelledRunKeepsWhatFinished: its tasks end before it does, what they wrote and who answered is not lost, and a
// new run goes on from there.
func TestACancelledRunKeepsWhatFinished(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// careful finishes what it is at when it is cancelled, after the answer has come; careless does not.
	answered := make(chan struct{})
	release := sync.OnceFunc(func() { close(answered) })
	t.Cleanup(release)
	careful := graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		<-ctx.Done()
		<-answered
		return writes("log", []string{"careful"}), nil
	}}
	var ranBefore atomic.Bool
	careless := graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		if !ranBefore.Swap(true) {
			<-ctx.Done()
			return pregel.Command{}, context.Cause(ctx)
		}
		return writes("log", []string{"careless"}), nil
	}}
	g := graph("cancel", map[string]graphadapter.Node{"asker": asking("asker", "really?"), "careful": careful, "careless": careless},
		[]string{"asker", "careful", "careless"},
		to(pregel.Start, "asker"), to(pregel.Start, "careful"), to(pregel.Start, "careless"))
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "cancel", Input: protocol.Input{Value: pregel.Value(`{}`)}})
	s := r.until(thread, "the question", func(s protocol.State) bool { return len(s.Questions) == 1 })
	if err := r.client.CancelWorkflow(r.ctx, thread, ""); err != nil {
		t.Fatal(err)
	}
	// Until its tasks have ended it takes answers, and keeps them.
	if _, err := r.update(thread, answer("u", s.Questions[0], `"yes"`)); err != nil {
		t.Fatal(err)
	}
	release()
	left := closingOf(t, run.Get(r.ctx, nil))
	if left.Step != 0 || len(left.Life.Answered) != 1 {
		t.Errorf("the run left step %d and the answers %+v", left.Step, left.Life.Answered)
	}
	in := next("cancel", left)
	in.Suspect = true
	log := string(r.finished(r.start(thread, in)).Output["log"])
	if log != `["asker","\"yes\"","careful","careless"]` {
		t.Errorf("the next run ended with %s", log)
	}
	if h := r.history(thread); strings.Count(asJSON(t, h), "cancel.careful") > 0 {
		t.Error("the finished task ran again")
	}
}

// TestAFailedRunSaysWhy: the failure names the node for people and for programs.
func TestAFailedRunSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(failingGraph())
	thread := testserver.Queue(t)
	err := r.start(thread, protocol.GraphInput{Graph: "failing", Input: protocol.Input{Value: pregel.Value(`{}`)}}).Get(r.ctx, nil)
	left := closingOf(t, err)
	if left.Failure == nil || left.Failure.Node != "bad" || left.Failure.Graph != "failing" || left.Failure.Message != "bad is not ready" {
		t.Errorf("the failure is %+v", left.Failure)
	}
	if !strings.Contains(err.Error(), thread) || !strings.Contains(err.Error(), "bad is not ready") {
		t.Errorf("the run failed with %v", err)
	}
}

// TestARefusedInputFailsTheRun: with the thread as it was.
func TestARefusedInputFailsTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	for _, c := range []struct {
		input, reason string
		step          int
	}{
		{`{"log":1}`, "append/v1 takes lists", -1},
		{`[]`, "must be a JSON object", -1},
	} {
		in := protocol.GraphInput{Graph: "chain", Input: protocol.Input{Value: pregel.Value(c.input)}}
		err := r.start(thread, in).Get(r.ctx, nil)
		left := closingOf(t, err)
		if !strings.Contains(err.Error(), c.reason) || left.Step != c.step {
			t.Errorf("%q: %v at step %d, want %s at step %d", c.input, err, left.Step, c.reason, c.step)
		}
	}
}
