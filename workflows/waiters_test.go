package workflows_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

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

// accepted reports whether the newest run has accepted the updates of these ids.
func (r *rig) accepted(thread string, ids ...string) bool {
	events := r.client.GetWorkflowHistory(r.ctx, thread, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	found := 0
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if slices.Contains(ids, e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetMeta().GetUpdateId()) {
			found++
		}
	}
	return found == len(ids)
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
	await(t, "the wait is taken", func() bool { return r.accepted(thread, "w") }, func() any { return r.runs(thread) })
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

// TestAWaitGivesWay: whoever waits keeps no run that is long enough from being continued as a new one, and asks that one; a run is long
// long before its superstep ends, and until then nobody asks again and again.
func TestAWaitGivesWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, release := slowGraph()
	r.work(graph("long", map[string]graphadapter.Node{"slow": g.Nodes["slow"], "after": says("after")},
		[]string{"slow", "after"}, to(pregel.Start, "slow"), to("slow", "after")))
	thread, enough := testserver.Queue(t), 40
	run := r.start(thread, protocol.GraphInput{Graph: "long", Input: input(`{}`), ContinueAt: &protocol.ContinueAt{Events: enough, Life: 1}})
	pending, length := 0, int64(0)
	look := func() {
		described, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
		if err != nil {
			t.Fatal(err)
		}
		pending, length = len(described.GetPendingActivities()), described.GetWorkflowExecutionInfo().GetHistoryLength()
	}
	await(t, "the node in its activity", func() bool { look(); return pending == 1 }, func() any { return r.runs(thread) })
	waits := r.rest(thread, "w")
	for n := 0; length < int64(enough)+10 || n%2 > 0; n++ {
		id := fmt.Sprintf("p%d", n)
		if err := r.callOnce(thread, protocol.UpdatePause, id, protocol.PauseRequest{ID: id, Unpause: n%2 > 0}, nil); err != nil {
			t.Fatal(err)
		}
		look()
	}
	late := r.rest(thread, "late") // of a run that is due
	await(t, "both waits are taken", func() bool { return r.accepted(thread, "w", "late") }, func() any { return r.runs(thread) })
	select {
	case reply := <-waits:
		t.Fatalf("while its task is under way it rests as %+v", reply)
	default:
	}
	close(release)
	for _, w := range []<-chan protocol.RestReply{waits, late} {
		if reply := <-w; !reply.Moved {
			t.Errorf("it rests as %+v", reply)
		}
	}
	r.finished(run)
	if runs := r.runs(thread); len(runs) != 2 {
		t.Errorf("the runs are %v", runs)
	}
}

// TestWaitersWithoutCache runs those of above again in a process that keeps no workflow between tasks.
func TestWaitersWithoutCache(t *testing.T) {
	t.Parallel()
	if os.Getenv(uncachedEnv) != "" {
		t.Skip("this is that process")
	}
	uncached(t, "^(TestWaitsForARest|TestAWaitEndsWithTheRun|TestManyWaiters)$")
}
