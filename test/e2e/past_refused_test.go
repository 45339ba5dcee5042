package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// refusal is a command line that is refused, with the exit code and what the one line says.
type refusal struct {
	exit int
	says string
	args []string
}

// Changes that cannot be made leave the thread as it was, and usable.
func TestChangesThatAreRefused(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := r.stopped()
	other := r.begin("adds", map[string]string{"note": "a"})
	r.wait(other, thread.StatusFinished)
	r.putText("big.json", `{"note":"`+strings.Repeat("x", 2<<20)+`"}`)
	state, history := r.stateOf(threadID), r.historyOf(threadID)
	for _, row := range []refusal{
		{4, "no checkpoint", []string{"fork", threadID, "no-such-checkpoint"}},
		{4, "no checkpoint", []string{"fork", threadID, "no-such-checkpoint", "--as", testserver.Queue(t)}},
		{4, "no thread", []string{"fork", "no-such-thread", history[0].Checkpoint}},
		{2, "exists already", []string{"fork", threadID, history[0].Checkpoint, "--as", other}},
		{4, "no checkpoint", []string{"run", "chooses", "--thread", threadID, "--from-checkpoint", "no-such-checkpoint"}},
		{4, "no thread", []string{"run", "chooses", "--thread", "no-such-thread"}},
		{2, "belongs to graph", []string{"run", "adds", "--thread", threadID}},
		{2, "nobody", []string{"update", threadID, "--values", `{"note":"x"}`, "--as-node", "nobody"}},
		{2, "unknown field", []string{"update", threadID, "--values", `{"notes":"x"}`}},
		{2, "not JSON", []string{"update", threadID, "--values", "note=x"}},
		{2, "1 MiB", []string{"update", threadID, "--values", "@" + r.dir + "/big.json"}},
		{4, "no checkpoint", []string{"update", threadID, "--values", `{"note":"x"}`, "--at", "no-such-checkpoint"}},
		{4, "subgraph", []string{"update", threadID, "--values", `{"note":"x"}`, "--in", "first"}},
		{4, "no thread", []string{"update", "no-such-thread", "--values", `{"note":"x"}`}},
		{4, "no checkpoint", []string{"state", threadID, "--at", "no-such-checkpoint"}},
		{4, "no subgraph", []string{"state", threadID, "--in", "first"}},
		{4, "no checkpoint", []string{"history", threadID, "--before", "no-such-checkpoint"}},
		{4, "no subgraph", []string{"history", threadID, "--in", "first"}},
		{2, "takes no value", []string{"resume", threadID, "q-none", "--value", "true"}},
		{4, "no thread", []string{"drain", "no-such-thread"}},
		{2, "field \"note\": expected string", []string{"update", threadID, "--values", `{"note":7}`, "--as-node", "first"}},
		{2, "field \"log\": expected []string", []string{"update", threadID, "--values", `{"log":"y"}`, "--as-node", "first"}},
		{2, "no such node", []string{"run", "chooses", "--thread", threadID, "--interrupt-before", "nobody"}},
	} {
		out := r.exits(row.exit, r.superstep(row.args...))
		require.Contains(t, out.stderr, row.says, "%q", row.args)
		require.Empty(t, out.stdout, "%q", row.args)
	}
	require.Equal(t, state, r.stateOf(threadID))
	require.Equal(t, history, r.historyOf(threadID))
	r.exits(0, r.superstep("run", "chooses", "--thread", threadID, "--follow"))
	require.Equal(t, []string{"first", "left", "last"}, logOf(t, r.stateOf(threadID)))
}

// Answers to questions that nobody asked answer nothing: those that were asked stay open.
func TestAnswersToUnknownQuestions(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := r.begin("asks", map[string]string{})
	open := r.wait(threadID, thread.StatusWaiting).Questions
	require.Len(t, open, 2)
	_, err := asks().Thread(r.client, threadID).ResumeByID(t.Context(), map[string]any{"q-none": "x", open[0].ID: "blue"})
	require.ErrorIs(t, err, thread.ErrNotFound)
	require.Equal(t, open, r.wait(threadID, thread.StatusWaiting).Questions)
	_, err = r.client.Start(t.Context(), thread.StartRequest{Graph: "asks", Thread: threadID,
		Resume: &pregel.Resume{ByID: map[string]pregel.Value{"q-none": pregel.Value(`"x"`)}}})
	require.NoError(t, err, "as LangGraph takes it")
	require.Equal(t, open, r.wait(threadID, thread.StatusWaiting).Questions)
}

// While a run is under way nothing changes its state behind its back.
func TestChangesWhileARunIsUnderWay(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	r.put("hold")
	threadID := r.begin("chooses", map[string]string{"dir": r.dir, "note": "left"})
	r.until("the branch is evaluated", func() bool { return r.ran("choice") == 1 })
	var history []thread.CheckpointView
	r.until("the first half second is over", func() bool {
		history = r.historyOf(threadID)
		return len(history) > 0
	})
	for _, args := range [][]string{
		{"update", threadID, "--values", `{"note":"right"}`, "--as-node", "first"},
		{"fork", threadID, history[0].Checkpoint},
		{"run", "chooses", "--thread", threadID, "--input", `{"note":"right"}`},
		{"run", "chooses", "--thread", threadID},
	} {
		out := r.exits(2, r.superstep(args...))
		require.Contains(t, out.stderr, "under way", "%q", args)
	}
	r.remove("hold")
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, []int{1, 1, 0, 1}, []int{r.ran("first"), r.ran("left"), r.ran("right"), r.ran("last")})
}

// The past of a graph with reducers of its own is read by the program that has the graph; another one says so.
func TestThePastOfAGraphWithReducersOfItsOwn(t *testing.T) {
	r := newRig(t)
	worker := r.graphsWorker("worker")
	threadID := r.begin("reduces", r.steered())
	r.wait(threadID, thread.StatusFinished)
	r.kill(worker)
	checkpoint := where(t, shownBy[[]thread.CheckpointView](r, r.own("history", threadID, "-o", "json").end()), "third")
	at := shownBy[thread.StateView](r, r.own("state", threadID, "--at", checkpoint, "-o", "json").end())
	require.JSONEq(t, string(encode(t, r.dir+"/second")), string(at.Values["best"]))
	out := r.exits(2, r.superstep("state", threadID, "--at", checkpoint))
	require.Contains(t, out.stderr, "run this from the program that has the graph")

	r.graphsWorker("worker-2")
	r.exits(0, r.own("fork", threadID, checkpoint, "--follow").end())
	require.Equal(t, []int{1, 1, 2}, []int{r.ran("first"), r.ran("second"), r.ran("third")})
}

// A thread that a newer version of Superstep began is not touched by an older one: its run waits for a worker that
// understands it, and whoever wants to change it is told why not.
func TestANewerSpecIsLeftAlone(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	spec := *chooses().Adapter().Spec
	spec.Version = pregel.SpecVersion + 1
	threadID := r.ofSpec("chooses", &spec)
	r.until("the worker says why", func() bool {
		view, err := r.client.Show(t.Context(), threadID)
		return err == nil && view.Problem != ""
	})
	out := r.exits(0, r.superstep("show", threadID))
	require.Contains(t, out.stdout, fmt.Sprintf("version %d", pregel.SpecVersion+1))
	for _, row := range []refusal{
		{6, "no worker", []string{"update", threadID, "--values", `{"note":"x"}`}},
		{6, "no worker", []string{"state", threadID}},
		{4, "no checkpoint", []string{"fork", threadID, "c-1"}},
	} {
		out := r.exits(row.exit, r.superstep(row.args...))
		require.Contains(t, out.stderr, row.says, "%q", row.args)
	}
	view, err := r.client.Show(t.Context(), threadID)
	require.NoError(t, err)
	require.Equal(t, thread.StatusRunning, view.Status)
}

// ofSpec starts a thread with a spec of its own, as a client of another version does.
func (r *rig) ofSpec(graph string, spec *pregel.Spec) (thread string) {
	r.t.Helper()
	thread = testserver.Queue(r.t)
	_, err := r.temporal.ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{ID: thread, TaskQueue: r.queue,
		Memo: map[string]any{protocol.MemoGraph: graph}}, protocol.GraphWorkflow, protocol.GraphInput{Graph: graph, Spec: spec,
		Input: protocol.Input{Value: encode(r.t, r.steered())}})
	require.NoError(r.t, err)
	return thread
}
