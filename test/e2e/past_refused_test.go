package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
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
	thread := r.stopped()
	other := r.begin("adds", map[string]string{"note": "a"})
	r.wait(other, superstep.StatusFinished)
	r.putText("big.json", `{"note":"`+strings.Repeat("x", 2<<20)+`"}`)
	state, history := r.stateOf(thread), r.historyOf(thread)
	for _, row := range []refusal{
		{4, "no checkpoint", []string{"fork", thread, "no-such-checkpoint"}},
		{4, "no checkpoint", []string{"fork", thread, "no-such-checkpoint", "--as", testserver.Queue(t)}},
		{4, "no thread", []string{"fork", "no-such-thread", history[0].Checkpoint}},
		{2, "exists already", []string{"fork", thread, history[0].Checkpoint, "--as", other}},
		{4, "no checkpoint", []string{"run", "chooses", "--thread", thread, "--from-checkpoint", "no-such-checkpoint"}},
		{4, "no thread", []string{"run", "chooses", "--thread", "no-such-thread"}},
		{2, "belongs to graph", []string{"run", "adds", "--thread", thread}},
		{2, "nobody", []string{"update", thread, "--values", `{"note":"x"}`, "--as-node", "nobody"}},
		{2, "unknown field", []string{"update", thread, "--values", `{"notes":"x"}`}},
		{2, "not JSON", []string{"update", thread, "--values", "note=x"}},
		{2, "1 MiB", []string{"update", thread, "--values", "@" + r.dir + "/big.json"}},
		{4, "no checkpoint", []string{"update", thread, "--values", `{"note":"x"}`, "--at", "no-such-checkpoint"}},
		{4, "subgraph", []string{"update", thread, "--values", `{"note":"x"}`, "--in", "first"}},
		{4, "no thread", []string{"update", "no-such-thread", "--values", `{"note":"x"}`}},
		{4, "no checkpoint", []string{"state", thread, "--at", "no-such-checkpoint"}},
		{4, "no subgraph", []string{"state", thread, "--in", "first"}},
		{4, "no checkpoint", []string{"history", thread, "--before", "no-such-checkpoint"}},
		{4, "no subgraph", []string{"history", thread, "--in", "first"}},
		{2, "takes no value", []string{"resume", thread, "q-none", "--value", "true"}},
		{4, "no thread", []string{"drain", "no-such-thread"}},
		{2, "field \"note\": expected string", []string{"update", thread, "--values", `{"note":7}`, "--as-node", "first"}},
		{2, "field \"log\": expected []string", []string{"update", thread, "--values", `{"log":"y"}`, "--as-node", "first"}},
		{2, "no such node", []string{"run", "chooses", "--thread", thread, "--interrupt-before", "nobody"}},
	} {
		out := r.exits(row.exit, r.superstep(row.args...))
		require.Contains(t, out.stderr, row.says, "%q", row.args)
		require.Empty(t, out.stdout, "%q", row.args)
	}
	require.Equal(t, state, r.stateOf(thread))
	require.Equal(t, history, r.historyOf(thread))
	r.exits(0, r.superstep("run", "chooses", "--thread", thread, "--follow"))
	require.Equal(t, []string{"first", "left", "last"}, logOf(t, r.stateOf(thread)))
}

// Answers to questions that nobody asked answer nothing: those that were asked stay open.
func TestAnswersToUnknownQuestions(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	thread := r.begin("asks", map[string]string{})
	open := r.wait(thread, superstep.StatusWaiting).Questions
	require.Len(t, open, 2)
	_, err := asks().Thread(r.client, thread).ResumeByID(t.Context(), map[string]any{"q-none": "x", open[0].ID: "blue"})
	require.ErrorIs(t, err, superstep.ErrNotFound)
	require.Equal(t, open, r.wait(thread, superstep.StatusWaiting).Questions)
	_, err = r.client.Start(t.Context(), superstep.StartRequest{Graph: "asks", Thread: thread,
		Resume: &pregel.Resume{ByID: map[string]pregel.Value{"q-none": pregel.Value(`"x"`)}}})
	require.NoError(t, err, "as LangGraph takes it")
	require.Equal(t, open, r.wait(thread, superstep.StatusWaiting).Questions)
}

// While a run is under way nothing changes its state behind its back.
func TestChangesWhileARunIsUnderWay(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	r.put("hold")
	thread := r.begin("chooses", map[string]string{"dir": r.dir, "note": "left"})
	r.until("the branch is evaluated", func() bool { return r.ran("choice") == 1 })
	history := r.historyOf(thread)
	for _, args := range [][]string{
		{"update", thread, "--values", `{"note":"right"}`, "--as-node", "first"},
		{"fork", thread, history[0].Checkpoint},
		{"run", "chooses", "--thread", thread, "--input", `{"note":"right"}`},
		{"run", "chooses", "--thread", thread},
	} {
		out := r.exits(2, r.superstep(args...))
		require.Contains(t, out.stderr, "under way", "%q", args)
	}
	r.remove("hold")
	r.wait(thread, superstep.StatusFinished)
	require.Equal(t, []int{1, 1, 0, 1}, []int{r.ran("first"), r.ran("left"), r.ran("right"), r.ran("last")})
}

// The past of a graph with reducers of its own is read by the program that has the graph; another one says so.
func TestThePastOfAGraphWithReducersOfItsOwn(t *testing.T) {
	r := newRig(t)
	worker := r.graphsWorker("worker")
	thread := r.begin("reduces", r.steered())
	r.wait(thread, superstep.StatusFinished)
	r.kill(worker)
	checkpoint := where(t, shownBy[[]superstep.CheckpointView](r, r.own("history", thread, "-o", "json").end()), "third")
	at := shownBy[superstep.StateView](r, r.own("state", thread, "--at", checkpoint, "-o", "json").end())
	require.JSONEq(t, string(encode(t, r.dir+"/second")), string(at.Values["best"]))
	out := r.exits(2, r.superstep("state", thread, "--at", checkpoint))
	require.Contains(t, out.stderr, "run this from the program that has the graph")

	r.graphsWorker("worker-2")
	r.exits(0, r.own("fork", thread, checkpoint, "--follow").end())
	require.Equal(t, []int{1, 1, 2}, []int{r.ran("first"), r.ran("second"), r.ran("third")})
}

// A thread that a newer version of Superstep began is not touched by an older one: its run waits for a worker that
// understands it, and whoever wants to change it is told why not.
func TestANewerSpecIsLeftAlone(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	spec := *chooses().Adapter().Spec
	spec.Version = pregel.SpecVersion + 1
	thread := r.ofSpec("chooses", &spec)
	r.until("the worker says why", func() bool {
		view, err := r.client.Show(t.Context(), thread)
		return err == nil && view.Problem != ""
	})
	out := r.exits(0, r.superstep("show", thread))
	require.Contains(t, out.stdout, fmt.Sprintf("version %d", pregel.SpecVersion+1))
	for _, row := range []refusal{
		{6, "no worker", []string{"update", thread, "--values", `{"note":"x"}`}},
		{6, "no worker", []string{"state", thread}},
		{4, "no checkpoint", []string{"fork", thread, "c-1"}},
	} {
		out := r.exits(row.exit, r.superstep(row.args...))
		require.Contains(t, out.stderr, row.says, "%q", row.args)
	}
	view, err := r.client.Show(t.Context(), thread)
	require.NoError(t, err)
	require.Equal(t, superstep.StatusRunning, view.Status)
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
