package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestAnEventComesWhileNoWorkerIsThere: it is stored, and the next worker goes on with it. The same event sent again by
// any way is one.
func TestAnEventComesWhileNoWorkerIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := waitingGraph(waitsFor(0, "paid", "sent"), says("right"))
	stop := r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`)})
	s := r.waitsForEvents(thread, 1)
	if len(s.Questions) != 0 || s.Waits[0].Event != "paid" || s.Waits[0].Node != "left" {
		t.Errorf("it waits as %+v, asks %+v", s.Waits, s.Questions)
	}
	stop()
	r.eventBySignal(thread, protocol.EventRequest{ID: "e1", Name: "paid", Value: word("p")})
	r.eventBySignal(thread, protocol.EventRequest{ID: "e1", Name: "paid", Value: word("p")})
	stop = r.work(g)
	s = r.until(thread, "the second wait", func(s protocol.State) bool { return len(s.Waits) == 1 && s.Waits[0].Event == "sent" })
	if len(s.Kept) != 0 {
		t.Errorf("the event that came twice is kept: %+v", s.Kept)
	}
	if reply, err := r.event(thread, protocol.EventRequest{ID: "e1", Name: "paid", Value: word("p")}); err != nil || !reply.Repeated || strings.Join(reply.Nodes, " ") != "left" {
		t.Errorf("sent a third time: %+v, %v", reply, err)
	}
	// Accepted by a worker that is lost before it goes on with it.
	if reply, err := r.event(thread, protocol.EventRequest{ID: "e2", Name: "sent", Value: word("s")}); err != nil || reply.Repeated || strings.Join(reply.Nodes, " ") != "left" {
		t.Errorf("sent: %+v, %v", reply, err)
	}
	stop()
	r.work(g)
	r.logIs(run, `["p","s","right","end"]`)
}

// TestAnEventBeforeItsWaitIsKept, for the first wait of its name, once.
func TestAnEventBeforeItsWaitIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := waitingGraph(waitsFor(0, "other", "paid"), waitsFor(0, "more", "paid"))
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`)})
	r.waitsForEvents(thread, 2)
	reply, err := r.event(thread, protocol.EventRequest{ID: "p1", Name: "paid", Value: word("first"), By: "bank"})
	if err != nil || len(reply.Nodes) != 0 {
		t.Fatalf("an event that nobody waits for: %+v, %v", reply, err)
	}
	if s := r.waitsForEvents(thread, 2); len(s.Kept) != 1 || s.Kept[0].Name != "paid" || s.Kept[0].By != "bank" || s.Kept[0].Value != nil {
		t.Errorf("it keeps %+v", s.Kept)
	}
	for _, name := range []string{"more", "other"} {
		if _, err := r.event(thread, protocol.EventRequest{ID: name, Name: name, Value: word(name)}); err != nil {
			t.Fatal(err)
		}
		if name == "more" { // right waits first, and has what was kept
			r.until(thread, "the end of right", func(s protocol.State) bool { return len(s.Kept) == 0 && len(s.Waits) == 1 })
		}
	}
	r.until(thread, "the wait of left", func(s protocol.State) bool { return len(s.Waits) == 1 && s.Waits[0].Event == "paid" })
	if _, err := r.event(thread, protocol.EventRequest{ID: "p2", Name: "paid", Value: word("second")}); err != nil {
		t.Fatal(err)
	}
	r.logIs(run, `["other","second","more","first","end"]`)
}

// TestOneEventAnswersAllWhoWait, a person answers beside it, and neither takes the other's part.
func TestOneEventAnswersAllWhoWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := graph("mixed", map[string]graphadapter.Node{"left": waitsFor(0, "go"), "right": waitsFor(0, "go"), "ask": asking("ask", "well?"), "end": says("end")},
		[]string{"left", "right", "ask", "end"}, to(pregel.Start, "left"), to(pregel.Start, "right"), to(pregel.Start, "ask"),
		to("left", "end"), to("right", "end"), to("ask", "end"))
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "mixed", Input: input(`{}`)})
	s := r.asks(thread, 1) // a person is waited for
	if len(s.Waits) != 2 || s.Questions[0].Node != "ask" {
		t.Errorf("it asks %+v and waits for %+v", s.Questions, s.Waits)
	}
	_, err := r.update(thread, protocol.ResumeRequest{ID: "r", Question: s.Waits[0].ID, Value: word("x")})
	if errorKind(err) != protocol.ErrTypeBadAnswer || !strings.Contains(err.Error(), `waits for the event "go"`) {
		t.Errorf("a person's answer to a wait: %v", err)
	}
	given := &pregel.Resume{Answers: []pregel.Answer{{QuestionID: s.Waits[0].ID, Value: word("x")}}}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "i", Input: protocol.Input{Resume: given}}); errorKind(err) != protocol.ErrTypeBadAnswer {
		t.Errorf("a person's answer as input: %v", err)
	}
	if _, err := r.update(thread, protocol.ResumeRequest{ID: "yes", Question: s.Questions[0].ID, Value: word("yes")}); err != nil {
		t.Fatal(err)
	}
	r.waitsForEvents(thread, 2)
	if reply, err := r.event(thread, protocol.EventRequest{ID: "go", Name: "go", Value: word("now")}); err != nil || strings.Join(reply.Nodes, " ") != "left right" {
		t.Errorf("it was given to %+v, %v", reply, err)
	}
	r.logIs(run, `["ask","\"yes\"","now","now","end"]`)
}

// TestEventsThatDoNotFit are refused while somebody waits, and dropped with a note when they were there before.
func TestEventsThatDoNotFit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := waitingGraph(waitsFor(0, "paid", "sent"), says("right"))
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`)})
	r.waitsForEvents(thread, 1)
	if _, err := r.event(thread, protocol.EventRequest{ID: "a", Name: "paid", Value: pregel.Value(`7`)}); errorKind(err) != protocol.ErrTypeBadAnswer {
		t.Errorf("an event of another type: %v", err)
	}
	for i, value := range []string{`{"no":1}`, `"yes"`} {
		if _, err := r.event(thread, protocol.EventRequest{ID: fmt.Sprint("s", i), Name: "sent", Value: pregel.Value(value)}); err != nil {
			t.Fatal(err)
		}
	}
	r.eventBySignal(thread, protocol.EventRequest{ID: "b", Name: "paid", Value: pregel.Value(`8`)})
	r.until(thread, "the refusal", func(s protocol.State) bool { return len(s.Refused) == 1 && s.Refused[0].Event == "paid" })
	if _, err := r.event(thread, protocol.EventRequest{ID: "c", Name: "paid", Value: word("p")}); err != nil {
		t.Fatal(err)
	}
	r.logIs(run, `["p","yes","right","end"]`)
	if s, err := r.state(thread); err != nil || len(s.Refused) != 2 || s.Refused[1].Event != "sent" {
		t.Errorf("what did not fit is not noted: %+v, %v", s.Refused, err)
	}
}

// TestEventsAreBounded: whatever is sent, the run keeps no more than it can carry.
func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(waitingGraph(waitsFor(0, "paid"), says("right")))
	thread := testserver.Queue(t)
	r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`)})
	r.waitsForEvents(thread, 1)
	large := word(strings.Repeat("x", graphadapter.MaxEventBytes-2))
	for i, req := range []protocol.EventRequest{{ID: "0", Name: strings.Repeat("n", 257)}, {ID: "1"}, {ID: "2", Name: "n", Value: word(strings.Repeat("x", graphadapter.MaxEventBytes))},
		{ID: "3", Name: "n", By: strings.Repeat("b", 257)}} {
		if _, err := r.event(thread, req); errorKind(err) != protocol.ErrTypeBadAnswer {
			t.Errorf("request %d: %v", i, err)
		}
	}
	for i := range 2 {
		if _, err := r.event(thread, protocol.EventRequest{ID: fmt.Sprint("l", i), Name: "large", Value: large}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.event(thread, protocol.EventRequest{ID: "l2", Name: "large", Value: large}); errorKind(err) != protocol.ErrTypeBusy {
		t.Errorf("more bytes than can be kept: %v", err)
	}
	for i := 2; i < graphadapter.MaxKeptEvents; i++ {
		r.eventBySignal(thread, protocol.EventRequest{ID: fmt.Sprint("s", i), Name: "small"})
	}
	r.until(thread, "the events", func(s protocol.State) bool { return len(s.Kept) == graphadapter.MaxKeptEvents })
	if _, err := r.event(thread, protocol.EventRequest{ID: "over", Name: "small"}); errorKind(err) != protocol.ErrTypeBusy {
		t.Errorf("more events than can be kept: %v", err)
	}
}

// TestStoredEventsAreDelivered: senders of signals were promised that their events are stored, so a run keeps them all, in number and in
// bytes, also while it is continued as a new one.
func TestStoredEventsAreDelivered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	names := slices.Repeat([]string{"paid"}, 5)
	small := graphadapter.MaxKeptEvents + 30
	g := waitingGraph(sizesOf(append(slices.Repeat([]string{"small"}, small), names...)...), says("right"))
	stop := r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`), ContinueAt: &protocol.ContinueAt{Events: 300, Life: 1}})
	r.waitsForEvents(thread, 1)
	stop()
	for i := range names {
		r.eventBySignal(thread, protocol.EventRequest{ID: fmt.Sprint("p", i), Name: "paid", Value: word(strings.Repeat("p", 200_000))})
	}
	for i := range small {
		r.eventBySignal(thread, protocol.EventRequest{ID: fmt.Sprint("s", i), Name: "small", Value: word("s")})
	}
	r.work(g)
	r.logIs(run, fmt.Sprintf(`["%s%s","right","end"]`, strings.Repeat("3 ", small), strings.TrimSpace(strings.Repeat("200002 ", len(names)))))
}

// TestAWaitTimesOut by a timer of the server, also while no worker is there; one that is answered leaves no timer.
func TestAWaitTimesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := waitingGraph(waitsFor(10*time.Second, "paid"), waitsFor(time.Hour, "sent"))
	stop := r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`)})
	s := r.waitsForEvents(thread, 2)
	if len(s.Due) != 2 || !s.Due[0].At.Before(s.Due[1].At) {
		t.Errorf("they are due %+v", s.Due)
	}
	stop()
	await(t, "the timer", func() bool { return r.timersFired(run) > 0 }, func() any { return nil })
	r.work(g)
	r.until(thread, "the timeout", func(s protocol.State) bool { return len(s.Waits) == 1 && s.Waits[0].Event == "sent" })
	if _, err := r.event(thread, protocol.EventRequest{ID: "s", Name: "sent", Value: word("s")}); err != nil {
		t.Fatal(err)
	}
	r.logIs(run, `["late","s","end"]`)
}

// TestAnEventComesWhileItsNodeRuns: beside a sibling, a node that waits for several events runs again for the first, and
// the second comes before it has waited again.
func TestAnEventComesWhileItsNodeRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	again, release := make(chan struct{}, 10), make(chan struct{})
	both := graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		var log []string
		var missing error
		for _, name := range []string{"one", "two"} {
			q, err := graphadapter.EventQuestion(name, 0)
			if err != nil {
				return pregel.Command{}, err
			}
			answer, err := task.AskFor(ctx, q)
			if err != nil {
				missing = err
				continue
			}
			log = append(log, string(answer.Value))
		}
		if missing != nil && len(log) > 0 {
			again <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return writes("log", log), missing
	}}
	slow := graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return writes("log", []string{"right"}), context.Cause(ctx)
	}}
	r.work(waitingGraph(both, slow))
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`)})
	r.until(thread, "the waits", func(s protocol.State) bool { return len(s.Waits) == 2 })
	for i, name := range []string{"one", "two"} {
		if reply, err := r.event(thread, protocol.EventRequest{ID: name, Name: name, Value: word(name)}); err != nil || len(reply.Nodes) != 1 {
			t.Fatalf("event %s: %+v, %v", name, reply, err)
		}
		if i == 0 {
			<-again
		}
	}
	close(release)
	r.logIs(run, `["\"one\"","\"two\"","right","end"]`)
}

// TestAnEventThatIsKeptOutlivesItsRun, and a wait under way in a subgraph is found.
func TestAnEventThatIsKeptOutlivesItsRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := nestedGraph()
	inner := g.Subgraphs["inner"].Nodes["asker"]
	g.Subgraphs["inner"].Nodes["asker"] = waitsFor(0, "paid")
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "nested", Input: input(`{}`)})
	r.waitsForEvents(thread, 1)
	if _, err := r.event(thread, protocol.EventRequest{ID: "next", Name: "late", Value: word("kept")}); err != nil {
		t.Fatal(err)
	}
	if reply, err := r.event(thread, protocol.EventRequest{ID: "p", Name: "paid", Value: word("inside")}); err != nil || len(reply.Nodes) != 1 {
		t.Fatalf("to a wait in a subgraph: %+v, %v", reply, err)
	}
	result := r.finished(run)
	if !strings.Contains(string(result.Output["log"]), "inside") || len(result.Life.Kept) != 1 {
		t.Errorf("it ended with %s, and keeps %+v", result.Output["log"], result.Life.Kept)
	}
	g.Subgraphs["inner"].Nodes["asker"] = inner
}

// TestAWaitIsContinued as a new run: until the same moment, with the events that are kept, and paused as it is.
func TestAWaitIsContinued(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(waitingGraph(waitsFor(time.Hour, "paid", "sent"), says("right")))
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`), ContinueAt: always})
	due := r.waitsForEvents(thread, 1).Due
	kept := protocol.EventRequest{ID: "s", Name: "sent", Value: word("s")}
	if _, err := r.event(thread, kept); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pausing(thread, protocol.PauseRequest{ID: "p", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.event(thread, protocol.EventRequest{ID: "p", Name: "paid", Value: word("p")}); err != nil {
		t.Fatal(err)
	}
	r.continued(thread, run.GetRunID())
	s := r.paused(thread)
	if len(s.Due) != 0 || len(due) != 1 || len(s.Kept) != 1 || s.Paused.By != "ann" {
		t.Errorf("continued, it is %+v", s)
	}
	if reply, err := r.event(thread, kept); err != nil || !reply.Repeated {
		t.Errorf("the same event behind a continue-as-new: %+v, %v", reply, err)
	}
	if _, err := r.pausing(thread, protocol.PauseRequest{ID: "u", Unpause: true}); err != nil {
		t.Fatal(err)
	}
	r.logIs(r.client.GetWorkflow(r.ctx, thread, ""), `["p","s","right","end"]`)
}

// TestAContinuedWaitEndsInTime: its moment does not move with the run.
func TestAContinuedWaitEndsInTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(waitingGraph(waitsFor(15*time.Second, "paid"), says("right")))
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "waiting", Input: input(`{}`), ContinueAt: always})
	r.waitsForEvents(thread, 1)
	r.handled(thread)
	before := r.waitsForEvents(thread, 1).Due
	r.continued(thread, run.GetRunID())
	if now := r.waitsForEvents(thread, 1).Due; len(now) != 1 || !now[0].At.Equal(before[0].At) {
		t.Errorf("it was due %v, and is now %v", before, now)
	}
	r.logIs(r.client.GetWorkflow(r.ctx, thread, ""), `["late","right","end"]`)
}
