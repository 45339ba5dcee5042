package workflows_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows"
	"superstep.dev/workflows/leading"
)

// replay runs a recorded history through the workflow code of today.
func replay(t *testing.T, h *historypb.History, graphs ...*graphadapter.Graph) error {
	t.Helper()
	replayer := worker.NewWorkflowReplayer()
	workflows.NewGraphs(graphs, workflows.Config{}).Register(replayer)
	leading.New(nil, workflows.Leader{Name: "leader"}).Register(replayer)
	// Ids of questions are made of the thread's: a run that is answered goes on only under its own.
	thread := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	return replayer.ReplayWorkflowHistoryWithOptions(silent{}, h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: thread},
	})
}

// TestReplay: every run ever recorded goes on under this version. One that does not would be stuck after a deploy.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(histories, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 40 {
		t.Fatalf("there are %d recorded histories", len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			if err := replay(t, recorded(t, name), allGraphs()...); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReplayOfEveryMoment: a worker may take a run over before any of its workflow tasks.
func TestReplayOfEveryMoment(t *testing.T) {
	for _, name := range []string{"questions", "fan-out", "nested", "cancelled", "updated", "forked", "timed-out", "handled", "drained",
		"questions-fused", "questions-async", "questions-exit", "handled-fused", "nested-async", "paused", "paused-fused", "paused-async",
		"paused-exit", "held-fused", "event", "event-async", "continued", "continues", "dropped", "compensated",
		"job", "job-approved", "job-stopped", "approved-by-two", "approval-edited", "approval-expired", "approval-refused",
		"told", "listed", "marked", "metered", "follows"} {
		whole, moments := recorded(t, name), 0
		for n := 3; n < len(whole.Events); n++ {
			if whole.Events[n].GetWorkflowTaskScheduledEventAttributes() == nil {
				continue
			}
			moments++
			if err := replay(t, &historypb.History{Events: whole.Events[:n]}, allGraphs()...); err != nil {
				t.Errorf("%s, up to event %d: %v", name, n, err)
			}
		}
		least := 2
		if slices.Contains([]string{"nested-async", "event-async", "marked"}, name) {
			least = 1 // most of it is within workflow tasks
		}
		if moments < least {
			t.Errorf("%s was replayed at %d moments", name, moments)
		}
	}
}

// TestAChangedReducerStopsTheRun: a run whose past comes out differently must not go on from there.
func TestAChangedReducerStopsTheRun(t *testing.T) {
	h := recorded(t, "reducing")
	if err := replay(t, h, reducingGraph(longer)); err != nil {
		t.Fatalf("with the same reducer: %v", err)
	}
	err := replay(t, h, reducingGraph(shorter))
	if err == nil || !strings.Contains(err.Error(), "run a worker with that version") {
		t.Errorf("with another reducer under the same name the replay says %v", err)
	}
}

// TestAChangedGraphLetsTheRunGoOn: a run goes on with the graph that it began with.
func TestAChangedGraphLetsTheRunGoOn(t *testing.T) {
	changed := chainGraph()
	changed.Spec.Nodes = append([]pregel.NodeSpec{{Name: "fresh"}}, changed.Spec.Nodes...)
	changed.Spec.Channels = append([]pregel.ChannelSpec{{Name: "more", Kind: pregel.KindLast}}, changed.Spec.Channels...)
	changed.Spec.Edges = []pregel.Edge{to(pregel.Start, "fresh"), to("fresh", "c"), to("c", "a")}
	changed.Nodes["fresh"] = says("fresh")
	for _, name := range []string{"chain", "again"} {
		if err := replay(t, recorded(t, name), changed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	lost := nestedGraph()
	lost.Spec = &pregel.Spec{Version: pregel.SpecVersion, Name: "nested", Nodes: []pregel.NodeSpec{{Name: "before"}},
		Edges: []pregel.Edge{to(pregel.Start, "before")}}
	if err := replay(t, recorded(t, "nested"), lost); err != nil {
		t.Errorf("a graph that lost its subgraph: %v", err)
	}
}

// TestAMissingReducerLetsTheRunWait: a worker without it fails the workflow task, not the run.
func TestAMissingReducerLetsTheRunWait(t *testing.T) {
	without := reducingGraph(longer)
	without.Reducers = nil
	err := replay(t, recorded(t, "reducing"), without)
	if err == nil || !strings.Contains(err.Error(), "tests.best/v1") {
		t.Errorf("without the reducer the replay says %v", err)
	}
	if err := replay(t, recorded(t, "chain"), fanOutGraph()); err == nil || !strings.Contains(err.Error(), `does not serve the graph "chain"`) {
		t.Errorf("without the graph the replay says %v", err)
	}
}
