package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// aString is the schema of the events of these tests.
const aString = `{"type":"string"}`

// waits waits for events one after the other and logs their values, "late" for one that did not come in time.
func waitsFor(timeout time.Duration, events ...string) graphadapter.Node {
	return graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		var log []string
		for _, name := range events {
			q, err := graphadapter.EventQuestion(name, timeout)
			if err != nil {
				return pregel.Command{}, err
			}
			q.Schema = pregel.Value(aString)
			answer, err := task.AskFor(ctx, q)
			var word string
			switch {
			case errors.Is(err, graphadapter.ErrEventTimeout):
				word = "late"
			case err != nil:
				return pregel.Command{}, err
			default:
				if err := json.Unmarshal(answer.Value, &word); err != nil {
					return pregel.Command{}, err
				}
			}
			log = append(log, word)
		}
		return writes("log", log), nil
	}}
}

// sizesOf waits for events one after the other and logs how many bytes each has, in one line.
func sizesOf(events ...string) graphadapter.Node {
	return graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		var line []string
		for _, name := range events {
			q, err := graphadapter.EventQuestion(name, 0)
			if err != nil {
				return pregel.Command{}, err
			}
			answer, err := task.AskFor(ctx, q)
			if err != nil {
				return pregel.Command{}, err
			}
			line = append(line, strconv.Itoa(len(answer.Value)))
		}
		return writes("log", []string{strings.Join(line, " ")}), nil
	}}
}

func (r *rig) event(thread string, req protocol.EventRequest) (reply protocol.EventReply, err error) {
	err = r.call(thread, protocol.UpdateEvent, req.ID, req, &reply)
	return reply, err
}

func (r *rig) eventBySignal(thread string, req protocol.EventRequest) {
	r.t.Helper()
	if err := r.client.SignalWorkflow(r.ctx, thread, "", protocol.SignalEvent, req); err != nil {
		r.t.Fatal(err)
	}
}

// waitsForEvents waits until a thread does nothing but wait for that many events.
func (r *rig) waitsForEvents(thread string, n int) protocol.State {
	r.t.Helper()
	return r.until(thread, "the waits", func(s protocol.State) bool {
		return s.Status == protocol.StatusWaitingEvent && len(s.Waits) == n
	})
}

// handled waits until the run has handled its history. Before that, a query of a worker that does not have the run in memory tells what comes
// of all events at the time of the last workflow task, and the task that handles them is later.
func (r *rig) handled(thread string) {
	r.t.Helper()
	await(r.t, "the end of the workflow task", func() bool {
		d, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
		return err == nil && d.GetPendingWorkflowTask() == nil
	}, func() any { return nil })
}

func word(s string) pregel.Value { return pregel.Value(fmt.Sprintf("%q", s)) }

func (r *rig) logIs(run interface {
	GetID() string
	Get(context.Context, any) error
}, want string) {
	r.t.Helper()
	var result protocol.GraphResult
	if err := run.Get(r.ctx, &result); err != nil {
		r.t.Fatalf("thread %s: %v", run.GetID(), err)
	}
	if log := string(result.Output["log"]); log != want {
		r.t.Errorf("thread %s ended with %s, want %s", run.GetID(), log, want)
	}
}

// waitingGraph has two nodes side by side that wait, and one behind them.
func waitingGraph(left, right graphadapter.Node) *graphadapter.Graph {
	return graph("waiting", map[string]graphadapter.Node{"left": left, "right": right, "end": says("end")},
		[]string{"left", "right", "end"},
		to(pregel.Start, "left"), to(pregel.Start, "right"), to("left", "end"), to("right", "end"))
}

// timersFired counts the timers of a run that fired.
func (r *rig) timersFired(run client.WorkflowRun) (n int) {
	r.t.Helper()
	events := r.client.GetWorkflowHistory(r.ctx, run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if e.GetTimerFiredEventAttributes() != nil {
			n++
		}
	}
	return n
}
