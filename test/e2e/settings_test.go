package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// A subgraph under way is looked at and changed from outside, and a run's context reaches its nodes.
func TestASubgraphUnderWay(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := testserver.Queue(t)
	run := []string{"run", "nests", "--thread", threadID, "--context", `{"tenant":"north"}`, "--follow"}
	r.exits(3, r.superstep(append(run, "--input", `{"note":"a"}`)...))

	out := r.exits(0, r.superstep("state", threadID, "--subgraphs"))
	require.Contains(t, out.stdout, "\nin team  step ")
	require.Contains(t, out.stdout, `local  "read by the team"`)
	inner := r.stateOf(threadID, "--in", "team")
	require.Equal(t, []string{"expert"}, inner.Next)
	require.Equal(t, []string{"reads"}, r.historyOf(threadID, "--in", "team")[0].Ran)

	out = r.exits(0, r.superstep("update", threadID, "--in", "team", "--values", `{"local":"told"}`))
	require.Contains(t, out.stdout, "updated  "+threadID)
	r.exits(3, r.superstep(run...))
	q := r.asked(threadID)
	require.JSONEq(t, `"What of told?"`, string(q.Value))
	r.exits(3, r.superstep("resume", threadID, q.ID, "--value", `"b"`, "--follow")) // it stops behind the question
	r.exits(0, r.superstep(run...))
	require.Equal(t, []string{"b for north"}, logOf(t, r.stateOf(threadID)))

	// The graph's own breakpoint is behind the question; a run can do without it.
	free := testserver.Queue(t)
	r.exits(3, r.superstep("run", "nests", "--thread", free, "--input", `{"note":"a"}`, "--context", `{"tenant":"south"}`,
		"--interrupt-before", "", "--follow"))
	r.exits(0, r.superstep("resume", free, "--value", `"c"`, "--follow"))
	require.Equal(t, []string{"c for south"}, logOf(t, r.stateOf(free)))
}

// A drained run ends the step under way, keeps it, and goes on when it is told to.
func TestADrainedRunGoesOn(t *testing.T) {
	r := newRig(t)
	worker := r.graphsWorker("worker-1")
	threadID := r.begin("pair", r.steered())
	r.until("the node runs", func() bool { return r.ran("shaky") == 1 })
	out := r.exits(0, r.superstep("drain", threadID, "--reason", "the service moves"))
	require.Contains(t, out.stdout, "draining  "+threadID)
	r.put("go")
	r.wait(threadID, thread.StatusStopped)
	require.Equal(t, []int{1, 1, 0}, []int{r.ran("steady"), r.ran("shaky"), r.ran("after")})
	out = r.exits(0, r.superstep("show", threadID))
	require.Contains(t, out.stdout, "the service moves")
	out = r.exits(0, r.superstep("drain", threadID))
	require.Contains(t, out.stdout, "drained  "+threadID)
	require.Contains(t, out.stdout, "next after")

	r.kill(worker)
	r.graphsWorker("worker-2")
	r.exits(0, r.superstep("run", "pair", "--thread", threadID, "--follow"))
	require.Equal(t, []int{1, 1, 1}, []int{r.ran("steady"), r.ran("shaky"), r.ran("after")})
	out = r.exits(0, r.superstep("drain", threadID))
	require.Contains(t, out.stdout, "nothing to drain  "+threadID+" is finished")
}

// A step that takes longer than the run allows fails it; what finished is kept, and the thread can go on.
func TestAStepOutOfTime(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	thread := testserver.Queue(t)
	out := r.exits(1, r.superstep("run", "pair", "--thread", thread, "--input", string(encode(t, r.steered())),
		"--step-timeout", "10s", "--max-concurrency", "2", "--follow"))
	require.Contains(t, out.stdout, "ran longer than 10s")
	r.put("go")
	r.exits(0, r.superstep("run", "pair", "--thread", thread, "--follow"))
	require.Equal(t, []int{1, 2, 1}, []int{r.ran("steady"), r.ran("shaky"), r.ran("after")})
}
