package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestForkWithinARun: a run that rests goes back to an earlier checkpoint; what comes is on a branch of its own.
func TestForkWithinARun(t *testing.T) {
	t.Parallel()
	r, thread, memory, s := waits(t)
	run := r.client.GetWorkflow(r.ctx, thread, "")
	q := questionOf(t, s, "one")
	if _, err := r.update(thread, answer("u", q, `"yes"`)); err != nil {
		t.Fatal(err)
	}
	r.asks(thread, 2)
	memorized(t, memory, protocol.Input{Resume: &pregel.Resume{Answers: []pregel.Answer{{QuestionID: q.ID, Value: pregel.Value(`"yes"`), By: "somebody"}}}}, graphadapter.RunOptions{})
	state, checkpoint := r.at(thread, run.GetRunID(), approvalGraph(), 0)
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "fork", State: state}); err != nil {
		t.Fatal(err)
	}
	now := r.until(thread, "the questions of the branch", func(now protocol.State) bool {
		return now.Status == protocol.StatusWaiting && len(now.Questions) == 3 && now.Questions[0].ID != s.Questions[0].ID
	})
	forked := memorized(t, memory, protocol.Input{}, graphadapter.RunOptions{Checkpoint: checkpoint})
	for i, q := range forked.Questions {
		if now.Questions[i].ID != q.ID {
			t.Errorf("question %d is %s, in memory %s", i, now.Questions[i].ID, q.ID)
		}
	}
	r.sameLines(thread, memory)
	r.samePast(thread, approvalGraph(), memory)
	r.answerAll(thread, run.GetRunID())
	if log := string(r.finished(run).Output["log"]); strings.Count(log, "yes to") != 4 || strings.Contains(log, `\"yes\"`) {
		t.Errorf("the branch ended with %s", log)
	}
}

// TestUpdateOfAnEarlierState is a branch as well.
func TestUpdateOfAnEarlierState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	memory := taskrun.NewMemory().Thread(chainGraph(), thread)
	opts := pregel.Options{InterruptBefore: []string{"c"}}
	run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: input(`{}`), Options: opts})
	r.stopped(thread)
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{Options: opts})
	state, checkpoint := r.at(thread, run.GetRunID(), chainGraph(), 1)
	for i := range 2 { // the same twice: two branches
		req := one(fmt.Sprint("u", i), as("a", "branch"))
		req.State = state
		reply, err := r.updateState(thread, req)
		if err != nil {
			t.Fatal(err)
		}
		want, err := memory.UpdateState(r.ctx, checkpoint, as("a", "branch"))
		if err != nil {
			t.Fatal(err)
		}
		if reply.Checkpoint != want.Checkpoint {
			t.Errorf("the checkpoint is %s, in memory %s", reply.Checkpoint, want.Checkpoint)
		}
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on", Settings: &protocol.Settings{}}); err != nil {
		t.Fatal(err)
	}
	if log := string(r.finished(run).Output["log"]); log != `["a","branch","b","c"]` {
		t.Errorf("it ended with %s", log)
	}
	memorized(t, memory, protocol.Input{}, graphadapter.RunOptions{})
	r.sameLines(thread, memory)
	r.samePast(thread, chainGraph(), memory)
}

// TestForkOfAThreadThatEnded: a new run starts from an earlier checkpoint of the last one, on a branch of its own.
func TestForkOfAThreadThatEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	memory := taskrun.NewMemory().Thread(chainGraph(), thread)
	run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: input(`{}`)})
	last := r.finished(run)
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{})
	in := next("chain", last.Closing)
	state, checkpoint := r.at(thread, run.GetRunID(), chainGraph(), 1)
	in.State, in.Replay = state, true
	if log := string(r.finished(r.start(thread, in)).Output["log"]); log != `["a","b","c"]` {
		t.Errorf("the branch ended with %s", log)
	}
	memorized(t, memory, protocol.Input{}, graphadapter.RunOptions{Checkpoint: checkpoint})
	r.sameLines(thread, memory)
}

// TestManyForksAtOnce: the run takes one at a time, and each is a branch of its own.
func TestManyForksAtOnce(t *testing.T) {
	t.Parallel()
	r, thread, _, _ := waits(t)
	run := r.client.GetWorkflow(r.ctx, thread, "").GetRunID()
	state, checkpoint := r.at(thread, run, approvalGraph(), 0)
	var all sync.WaitGroup
	for i := range 5 {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; ; n++ {
				err := r.invoke(thread, protocol.InvokeRequest{ID: fmt.Sprintf("f%d-%d", i, n), State: state})
				if errorKind(err) != protocol.ErrTypeBusy {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		}()
	}
	all.Wait()
	r.asks(thread, 3)
	ids, forks := map[string]bool{}, 0
	for _, l := range r.lines(thread) {
		ids[l.Checkpoint] = true
		if l.Source == pregel.SourceFork && l.Parent == checkpoint {
			forks++
		}
	}
	if len(ids) != 7 || forks != 5 {
		t.Errorf("there are %d checkpoints and %d forks, want 7 and 5: %+v", len(ids), forks, r.lines(thread))
	}
}

// TestSeveralUpdatesOfOneCheckpoint, of a node with a branch too, and twice the same; then new input, and a copy.
func TestSeveralUpdatesOfOneCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(branchingGraph(func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		if strings.Contains(string(s["log"].Value()), "go left") {
			return []pregel.Target{{Node: "left"}}, nil
		}
		return []pregel.Target{{Node: "right"}}, nil
	}))
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "branching", Input: input(`{}`)})
	before := r.stopped(thread)
	reply, err := r.updateState(thread, protocol.UpdateStateRequest{ID: "u", Edits: [][]graphadapter.StateUpdate{
		{as("router", "go left"), as("router", "on")}}})
	if err != nil || strings.Join(reply.Next, " ") != "left right" {
		t.Fatalf("the reply is %+v, %v", reply, err)
	}
	lines := r.lines(thread)
	if last := lines[len(lines)-1]; last.Checkpoint != reply.Checkpoint || last.Parent != before.Snapshot.Checkpoint || last.Source != pregel.SourceUpdate {
		t.Errorf("the update's checkpoint is %+v", last)
	}
	if _, err := r.updateState(thread, one("copy", graphadapter.StateUpdate{AsNode: pregel.AsCopy})); err != nil {
		t.Fatal(err)
	}
	if copied := r.lines(thread)[len(lines)]; copied.Source != pregel.SourceFork || copied.Parent != before.Snapshot.Checkpoint {
		t.Errorf("the copy is %+v", copied)
	}
	if _, err := r.updateState(thread, protocol.UpdateStateRequest{ID: "two", Edits: [][]graphadapter.StateUpdate{
		{as("router"), {AsNode: pregel.AsCopy}}}}); errorKind(err) != protocol.ErrTypeBadUpdate {
		t.Errorf("a copy beside another update is answered with %v", err)
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	if log := string(r.finished(run).Output["log"]); log != `["first","go left","on","left","right"]` {
		t.Errorf("it ended with %s", log)
	}
}
