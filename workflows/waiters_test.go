package workflows_test

import (
	"fmt"
	"os"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// rest waits for a run to rest, in the background.
func (r *rig) rest(thread, id string) <-chan protocol.RestReply {
	replies := make(chan protocol.RestReply, 1)
	go func() {
		defer close(replies)
		var reply protocol.RestReply
		if err := r.callOnce(thread, protocol.UpdateRest, id, nil, &reply); err != nil {
			r.t.Errorf("the wait %s is answered with %v", id, err)
			return
		}
		replies <- reply
	}()
	return replies
}

// TestWaitsForARest: a run under way tells when it asks and when it ends, also who waits while it does already.
func TestWaitsForARest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, release := slowGraph()
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "slow", Input: input(`{}`)})
	s := r.until(thread, "the question", func(s protocol.State) bool { return len(s.Questions) == 1 })
	first := r.rest(thread, "first")
	select {
	case reply := <-first:
		t.Fatalf("a run with a task under way rests: %+v", reply)
	default:
	}
	close(release)
	for _, waits := range []<-chan protocol.RestReply{first, r.rest(thread, "second")} {
		if reply := <-waits; reply.Status != protocol.StatusWaiting || reply.Ends {
			t.Errorf("it rests as %+v", reply)
		}
	}
	if _, err := r.update(thread, answer("a", s.Questions[0], `"yes"`)); err != nil {
		t.Fatal(err)
	}
	r.finished(run)
	if err := r.callOnce(thread, protocol.UpdateRest, "late", nil, nil); err == nil {
		t.Error("a run that has ended took a wait")
	}
}

// TestAWaitEndsWithTheRun: whoever waits is told before the last event.
func TestAWaitEndsWithTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, release := slowGraph()
	r.work(graph("alone", map[string]graphadapter.Node{"slow": g.Nodes["slow"]}, []string{"slow"}, to(pregel.Start, "slow")))
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "alone", Input: input(`{}`)})
	await(t, "the node in its activity", func() bool { // until then it is within a workflow task, which takes no update
		described, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
		return err == nil && len(described.GetPendingActivities()) == 1
	}, func() any { return r.runs(thread) })
	waits := r.rest(thread, "w")
	close(release)
	if reply := <-waits; !reply.Ends || reply.Status != protocol.StatusFinished {
		t.Errorf("it ends as %+v", reply)
	}
	r.finished(run)
}

// TestManyWaiters: three are told, others are refused at once, and answers find room.
func TestManyWaiters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, release := slowGraph()
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "slow", Input: input(`{}`)})
	s := r.until(thread, "the question", func(s protocol.State) bool { return len(s.Questions) == 1 })
	results := make(chan error, 12)
	for range cap(results) {
		go func() {
			var reply protocol.RestReply
			results <- r.callOnce(thread, protocol.UpdateRest, "", nil, &reply)
		}()
	}
	for range cap(results) - 3 {
		if err := <-results; errorKind(err) != protocol.ErrTypeBusy {
			t.Errorf("one too many is answered with %v", err)
		}
	}
	if _, err := r.update(thread, answer("a", s.Questions[0], `"yes"`)); err != nil {
		t.Fatal(err)
	}
	close(release)
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	r.finished(run)
}

// TestAWaitGivesWay: a run that is long enough is continued as a new one all the same, and whoever waits asks that one.
func TestAWaitGivesWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, release := slowGraph()
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "slow", Input: input(`{}`), ContinueAt: &protocol.ContinueAt{Events: 60}})
	s := r.until(thread, "the question", func(s protocol.State) bool { return len(s.Questions) == 1 })
	waits := r.rest(thread, "w")
	for n := 0; len(waits) == 0; n++ {
		id := fmt.Sprintf("p%d", n)
		if err := r.callOnce(thread, protocol.UpdatePause, id, protocol.PauseRequest{ID: id, Unpause: n%2 > 0}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if reply := <-waits; !reply.Moved {
		t.Errorf("it rests as %+v", reply)
	}
	if err := r.callOnce(thread, protocol.UpdatePause, "last", protocol.PauseRequest{ID: "last", Unpause: true}, nil); err != nil {
		t.Fatal(err)
	}
	close(release)
	if _, err := r.update(thread, answer("a", s.Questions[0], `"yes"`)); err != nil {
		t.Fatal(err)
	}
	r.finished(run)
}

// TestWaitersWithoutCache runs those of above again in a process that keeps no workflow between tasks.
func TestWaitersWithoutCache(t *testing.T) {
	t.Parallel()
	if os.Getenv(uncachedEnv) != "" {
		t.Skip("this is that process")
	}
	uncached(t, "^(TestWaitsForARest|TestAWaitEndsWithTheRun|TestManyWaiters)$")
}
