package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// update records the histories anew. Do that only for changes that no run in flight survives, and say so.
var update = flag.Bool("update", false, "record the histories in testdata/histories anew")

const histories = "testdata/histories"

// TestRecord records real runs, one of each kind, as they are to be replayed by every later version.
func TestRecord(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			r := newRig(t)
			r.work(s.graph())
			s.onServer(r, s.name)
			r.record(s.name, s.name)
		})
	}
	t.Run("follows", func(t *testing.T) {
		r := following(t)
		r.work(chainGraph())
		r.finished(r.start("follows", protocol.GraphInput{Graph: "chain", Input: protocol.Input{Value: pregel.Value(`{}`)}}))
		r.record("follows", "follows")
	})
	t.Run("failure", func(t *testing.T) {
		r := newRig(t)
		r.work(failingGraph())
		run := r.start("failure", protocol.GraphInput{Graph: "failing", Input: protocol.Input{Value: pregel.Value(`{}`)}})
		closingOf(t, run.Get(r.ctx, nil))
		r.record("failure", "failure")
	})
	t.Run("cancelled", func(t *testing.T) {
		r := newRig(t)
		r.work(approvalGraph())
		run := r.start("cancelled", protocol.GraphInput{Graph: "approval", Input: protocol.Input{Value: pregel.Value(`{}`)}})
		s := r.asks("cancelled", 3)
		r.signal("cancelled", protocol.ResumeRequest{ID: "s", Question: "no question", Value: pregel.Value(`"x"`)})
		if _, err := r.update("cancelled", protocol.ResumeRequest{ID: "u", Question: questionOf(t, s, "three").ID, Value: pregel.Value(`"yes"`)}); err != nil {
			t.Fatal(err)
		}
		r.asks("cancelled", 2)
		if err := r.client.CancelWorkflow(r.ctx, "cancelled", ""); err != nil {
			t.Fatal(err)
		}
		closingOf(t, run.Get(r.ctx, nil))
		r.record("cancelled", "cancelled")
	})
}

// TestRecordStateCalls records runs that were changed from outside, or ran out of time.
func TestRecordStateCalls(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	recordLife(t, "updated", branchingGraph(toRight), protocol.GraphInput{}, func(r *rig, run client.WorkflowRun) {
		r.stopped("updated")
		req := one("u", as("router", "by hand"))
		req.Edits = append(req.Edits, one("", as("right", "and again")).Edits...)
		if _, err := r.updateState("updated", req); err != nil {
			t.Fatal(err)
		}
		r.finished(run)
	})
	recordLife(t, "forked", approvalGraph(), protocol.GraphInput{}, func(r *rig, run client.WorkflowRun) {
		r.asks("forked", 3)
		state, _ := r.at("forked", run.GetRunID(), approvalGraph(), 0)
		settings := &protocol.Settings{MaxConcurrency: 1, StepTimeout: 60_000, Durability: graphadapter.DurabilityExit}
		if err := r.invoke("forked", protocol.InvokeRequest{ID: "fork", State: state, Settings: settings}); err != nil {
			t.Fatal(err)
		}
		r.answerAll("forked", run.GetRunID())
	})
	var runs atomic.Int32
	recordLife(t, "timed-out", hangingGraph(&runs), protocol.GraphInput{StepTimeout: 500}, func(r *rig, run client.WorkflowRun) {
		closingOf(t, run.Get(r.ctx, nil))
	})
	drained := chainGraph()
	drained.Nodes["a"] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		task.Drain("a deploy")
		return writes("log", []string{"a"}), nil
	}}
	recordLife(t, "drained", drained, protocol.GraphInput{}, func(r *rig, run client.WorkflowRun) {
		r.stopped("drained")
		if err := r.invoke("drained", protocol.InvokeRequest{ID: "on"}); err != nil {
			t.Fatal(err)
		}
		r.finished(run)
	})
	recordLife(t, "handled", handledGraph(), protocol.GraphInput{}, func(r *rig, run client.WorkflowRun) {
		r.asks("handled", 1)
		r.answerAll("handled", run.GetRunID())
	})
}

// recordLife records a run that is of that name, once life is over.
func recordLife(t *testing.T, name string, g *graphadapter.Graph, in protocol.GraphInput, life func(r *rig, run client.WorkflowRun)) {
	t.Run(name, func(t *testing.T) {
		r := newRig(t)
		r.work(g)
		in.Graph, in.Input = g.Spec.Name, input(`{}`)
		life(r, r.start(name, in))
		r.record(name, name)
	})
}

// record writes the history of a thread's newest run.
func (r *rig) record(thread, name string) {
	r.t.Helper()
	r.recordRun(thread, "", name)
}

// recordRun writes the history of one of a thread's runs.
func (r *rig) recordRun(thread, runID, name string) {
	r.t.Helper()
	h := r.historyOf(thread, runID)
	for _, e := range h.Events {
		// A worker's own queue is named after its host, which is nobody's business.
		if a := e.GetWorkflowTaskScheduledEventAttributes(); a.GetTaskQueue().GetNormalName() != "" {
			a.TaskQueue.Name = "sticky"
		}
	}
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
	if err != nil {
		r.t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", " "); err != nil {
		r.t.Fatal(err)
	}
	pretty.WriteByte('\n')
	if err := os.MkdirAll(histories, 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(histories, name+".json"), pretty.Bytes(), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) history(thread string) *historypb.History { return r.historyOf(thread, "") }

// historyOf is that of one run, the newest when runID is "".
func (r *rig) historyOf(thread, runID string) *historypb.History {
	r.t.Helper()
	all := &historypb.History{}
	events := r.client.GetWorkflowHistory(r.ctx, thread, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		all.Events = append(all.Events, e)
	}
	return all
}

// recorded reads a recorded history.
func recorded(t *testing.T, name string) *historypb.History {
	t.Helper()
	f, err := os.Open(filepath.Join(histories, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}
