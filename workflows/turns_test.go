package workflows_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// startOrTurn gives a thread an input by update-with-start, and returns when its run rests.
func (r *rig) startOrTurn(thread string, in protocol.GraphInput) (protocol.RestReply, error) {
	reply, err := r.startOrTurnOnce(thread, in)
	if protocol.RefusedEarly(err) {
		reply, err = r.startOrTurnOnce(thread, in)
	}
	return reply, err
}

func (r *rig) startOrTurnOnce(thread string, in protocol.GraphInput) (reply protocol.RestReply, err error) {
	handle, err := r.client.UpdateWithStartWorkflow(r.ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: r.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
			ID: thread, TaskQueue: r.queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		}, protocol.GraphWorkflow, in),
		UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: thread, UpdateID: in.ID, UpdateName: protocol.UpdateInvoke,
			Args: []any{turnOf(in)}, WaitForStage: client.WorkflowUpdateStageCompleted},
	})
	if err == nil {
		err = handle.Get(r.ctx, &reply)
	}
	for err == nil && reply.Moved {
		reply = protocol.RestReply{}
		err = r.call(thread, protocol.UpdateRest, "", nil, &reply)
	}
	return reply, err
}

// turnOf is the turn that an open run takes in the place of a start.
func turnOf(in protocol.GraphInput) protocol.InvokeRequest {
	return protocol.InvokeRequest{ID: in.ID, Graph: in.Graph, Input: in.Input, RestRequest: protocol.RestRequest{Rest: true}}
}

func words(n int) protocol.Input { return input(fmt.Sprintf(`{"log":["%d"]}`, n)) }

// TestAStartAndItsTurnAreOne: the run that a call starts with its input is not given that input by the call's update too, however
// often and in whichever of the thread's runs the update comes.
func TestAStartAndItsTurnAreOne(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]*protocol.ContinueAt{"one run": nil, "continued always": always, "continued by updates": {Updates: 4, Life: 1},
		"continued by updates under way": {Updates: 4, MostUpdates: 4, Life: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(chainGraph())
			thread := testserver.Queue(t)
			const turns = 10
			for n := range turns {
				in := protocol.GraphInput{Graph: "chain", ID: fmt.Sprintf("turn-%d", n), Input: words(n), KeepOpen: -1, ContinueAt: at}
				if _, err := r.startOrTurn(thread, in); err != nil {
					t.Fatal(err)
				}
				for again := range 2 { // the server knows the first one's id, the run the others'
					if err := r.call(thread, protocol.UpdateInvoke, fmt.Sprint(in.ID, again), turnOf(in), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			s := r.until(thread, "the last turn", func(s protocol.State) bool { return s.Status == protocol.StatusFinished })
			want := ""
			for n := range turns {
				want += fmt.Sprintf(`"%d","a","b","c",`, n)
			}
			if got := string(s.Snapshot.Values["log"]); got != "["+want[:len(want)-1]+"]" {
				t.Errorf("the turns made %s", got)
			}
			if runs := len(r.runs(thread)); at != nil && runs < 3 || at == nil && runs != 1 {
				t.Errorf("the thread has %d runs", runs)
			}
			in := protocol.GraphInput{Graph: "other", ID: "other", Input: words(0)}
			if _, err := r.startOrTurn(thread, in); errorKind(err) != protocol.ErrTypeBadUpdate {
				t.Errorf("a turn for another graph is answered with %v", err)
			}
		})
	}
}

// TestAConversationIsContinuedWhereItRests: with the reply to a turn, so that nobody who gives one is sent to the next run.
func TestAConversationIsContinuedWhereItRests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	const turns = 12
	for n := range turns {
		in := protocol.GraphInput{Graph: "chain", ID: fmt.Sprintf("turn-%d", n), Input: words(n), KeepOpen: -1,
			ContinueAt: &protocol.ContinueAt{Updates: 4, Life: 1}}
		reply, err := r.startOrTurn(thread, in)
		if err != nil || reply.Status != protocol.StatusFinished {
			t.Fatalf("turn %d is answered with %+v, %v", n, reply, err)
		}
	}
	runs := r.runs(thread)
	if len(runs) < turns/4 {
		t.Errorf("the thread has %d runs", len(runs))
	}
	for _, run := range runs {
		events := r.client.GetWorkflowHistory(r.ctx, thread, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName() == protocol.UpdateRest {
				t.Errorf("somebody who gave a turn was sent to the run %s", run)
			}
		}
	}
}

// TestARepliedStanding: who waits for a rest is told where the run stands, as far as it fits.
func TestARepliedStanding(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(askingGraph(), chainGraph())
	thread := testserver.Queue(t)
	reply, err := r.startOrTurn(thread, protocol.GraphInput{Graph: "asks", ID: "i", Input: words(1)})
	if err != nil || reply.Ends || reply.Stands == nil || reply.Stands.State == nil || len(reply.Stands.State.Questions) != 1 {
		t.Fatalf("it rests as %+v, with %v", reply, err)
	}
	var answered protocol.ResumeReply
	err = r.call(thread, protocol.UpdateResume, "a", protocol.ResumeUpdate{ResumeRequest: protocol.ResumeRequest{ID: "a", Value: pregel.Value(`"yes"`)},
		RestRequest: protocol.RestRequest{Rest: true}}, &answered)
	if err != nil || answered.Rest == nil || !answered.Rest.Ends || answered.Question != reply.Stands.State.Questions[0].ID {
		t.Fatalf("the answer leads to %+v, with %v", answered, err)
	}
	if got := string(answered.Rest.Stands.State.Snapshot.Values["log"]); got != `["1","asker","\"yes\""]` {
		t.Errorf("its output is %s", got)
	}
	long := input(fmt.Sprintf(`{"log":[%q]}`, strings.Repeat("x", 20<<10)))
	reply, err = r.startOrTurn(thread+"-long", protocol.GraphInput{Graph: "chain", ID: "i", Input: long})
	if err != nil || !reply.Ends || reply.Stands == nil || reply.Stands.State != nil || reply.Stands.Events == 0 {
		t.Errorf("with a long output it ends as %+v, with %v", reply, err)
	}
}

// askingGraph asks one question.
func askingGraph() *graphadapter.Graph {
	return graph("asks", map[string]graphadapter.Node{"asker": asking("asker", "sure?")}, []string{"asker"}, to(pregel.Start, "asker"))
}

// TestARunThatCannotBegin tells who waits for it, and leaves the thread as if it had not been started.
func TestARunThatCannotBegin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := chainGraph()
	g.CheckInput = func(v pregel.Value) error {
		if string(v) == `{"log":["0"]}` {
			return errors.New("not that one")
		}
		return nil
	}
	r.work(g)
	thread := testserver.Queue(t)
	reply, err := r.startOrTurn(thread, protocol.GraphInput{Graph: "chain", ID: "i", Input: words(0)})
	if err != nil || !reply.Ends || reply.Status != protocol.StatusFailed {
		t.Fatalf("it ends as %+v, with %v", reply, err)
	}
	err = r.client.GetWorkflow(r.ctx, thread, "").Get(r.ctx, nil)
	if errorKind(err) != protocol.ErrTypeBadInput {
		t.Errorf("it fails with %v", err)
	}
	run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: words(1)})
	if got := string(r.finished(run).Output["log"]); got != `["1","a","b","c"]` {
		t.Errorf("begun anew it has %s", got)
	}
}

// TestKeptOpenByOneTimer: turns cost no timers, and the run ends when the last of them is long enough ago.
func TestKeptOpenByOneTimer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	for n := range 8 {
		in := protocol.GraphInput{Graph: "chain", ID: fmt.Sprint("t", n), Input: words(n), KeepOpen: 600_000}
		if _, err := r.startOrTurn(thread, in); err != nil {
			t.Fatal(err)
		}
	}
	timers := 0
	for _, e := range r.history(thread).GetEvents() {
		if e.GetTimerStartedEventAttributes() != nil {
			timers++
		}
	}
	if timers != 1 {
		t.Errorf("eight turns started %d timers", timers)
	}
	last := turnOf(protocol.GraphInput{Graph: "chain", ID: "last", Input: words(9)})
	last.Settings = &protocol.Settings{KeepOpen: 50}
	if err := r.invoke(thread, last); err != nil {
		t.Fatal(err)
	}
	if err := r.client.GetWorkflow(r.ctx, thread, "").Get(r.ctx, nil); err != nil {
		t.Errorf("idle it ends with %v", err)
	}
}

// TestTurnsWithoutCache runs those of above again in a process that keeps no workflow between tasks.
func TestTurnsWithoutCache(t *testing.T) {
	t.Parallel()
	if os.Getenv(uncachedEnv) != "" {
		t.Skip("this is that process")
	}
	uncached(t, "^(TestAStartAndItsTurnAreOne|TestARepliedStanding|TestKeptOpenByOneTimer)$")
}
