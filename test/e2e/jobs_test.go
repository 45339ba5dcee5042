package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// submitted begins a job by the command line.
func (r *rig) submitted(goal string, more ...string) (id string) {
	r.t.Helper()
	id = "e" + testserver.Queue(r.t)
	r.exits(0, r.superstep(append([]string{"job", "submit", "--leader", "foreman", "--id", id, "--goal", goal, "--context", r.dir}, more...)...))
	return id
}

// showsJob waits until job show says something.
func (r *rig) showsJob(id, what string) string {
	r.t.Helper()
	var out ended
	r.until("job show says "+what, func() bool {
		out = r.superstep("job", "show", id)
		return strings.Contains(out.stdout, what)
	})
	return out.stdout
}

// TestJobsFromTheCommandLine: submit, show, stop, recover and answer, as docs/jobs.md has them.
func TestJobsFromTheCommandLine(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	id := r.submitted("two")
	require.Contains(t, r.showsJob(id, "1/2 done"), "p1-first ✓ ─── p1-then ▶")
	require.Contains(t, r.exits(2, r.superstep("job", "recover", id)).stderr, "there is nothing to recover")
	require.Contains(t, r.exits(2, r.superstep("job", "submit", "--leader", "foreman", "--id", id, "--goal", "two")).stderr, "already, and it runs")
	require.Contains(t, r.exits(0, r.superstep("job", "stop", id, "--reason", "the data is wrong")).stdout, "STOPPED")
	require.Contains(t, r.exits(7, r.superstep("job", "show", id, "--follow")).stdout, "the data is wrong")
	r.lists(id, "stopped")

	r.exits(0, r.superstep("job", "recover", id, "--lesson", "use the new file"))
	require.Contains(t, r.showsJob(id, "▶"), "1/2 done")
	r.put("go")
	require.Contains(t, r.exits(0, r.superstep("job", "show", id, "--follow")).stdout, "then(first())")
	require.Equal(t, "then(first())\n", r.exits(0, r.superstep("job", "answer", id)).stdout)
	require.Contains(t, r.exits(2, r.superstep("job", "stop", id)).stderr, "nothing was changed")
	require.Contains(t, r.exits(4, r.superstep("job", "show", id+"x")).stderr, "there is no job")
	require.Contains(t, r.exits(6, r.superstep("job", "submit", "--leader", "boss", "--goal", "two")).stderr, "it serves foreman")

	begun, err := os.ReadFile(filepath.Join(r.dir, "begun"))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(begun), "/s/p1-first/"), "what had finished was not done again")
	require.Contains(t, r.exits(0, r.superstep("erase", "job/"+id, "--yes", "-o", "json")).stdout, job.AttemptThread(id, "p1-first", 1))
	r.exits(4, r.superstep("job", "show", id))
}

// TestPlansAreDecidedOn: nothing runs before, an old version is refused, and an edited plan takes the place of the planner's.
func TestPlansAreDecidedOn(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	id := r.submitted("two", "--approve", "first")
	require.Contains(t, r.showsJob(id, "approving"), "Next: ")
	out := r.exits(3, r.superstep("job", "show", id, "--follow"))
	require.Contains(t, out.stdout, " job plan "+id)
	r.until("the inbox has it", func() bool {
		page, err := r.client.Inbox(t.Context(), thread.InboxQuery{Graph: "foreman", Limit: 1000})
		require.NoError(t, err)
		for _, i := range page.Questions {
			if i.Thread == job.WorkflowID(id) {
				return true
			}
		}
		return false
	})
	require.Contains(t, r.exits(0, r.superstep("job", "plan", id)).stdout, "waits for a decision")
	var plan struct {
		Version int               `json:"version"`
		SubJobs []job.DraftSubJob `json:"subjobs"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.exits(0, r.superstep("job", "plan", id, "-o", "json")).stdout), &plan))
	plan.SubJobs = plan.SubJobs[:1]
	edited, err := json.Marshal(plan)
	require.NoError(t, err)
	r.putText("plan.json", string(edited))
	require.Contains(t, r.exits(5, r.superstep("job", "plan", id, "--approve", "9")).stderr, "nothing was changed")
	r.exits(0, r.superstep("job", "plan", id, "--edit", "@"+filepath.Join(r.dir, "plan.json"), "--version", "1"))
	require.Equal(t, "first()\n", r.exits(0, r.superstep("job", "answer", id)).stdout)
}

// TestBudgetsAreRaised: a job that has spent what it may waits, and goes on when it may spend more.
func TestBudgetsAreRaised(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	r.put("go")
	id := r.submitted("two", "--attempts", "1")
	out := r.exits(3, r.superstep("job", "show", id, "--follow"))
	require.Contains(t, out.stdout, "over budget")
	require.Contains(t, r.exits(0, r.superstep("job", "budget", id)).stdout, "attempts  1")
	require.Contains(t, r.exits(0, r.superstep("job", "experts", id)).stdout, "worker")
	r.exits(0, r.superstep("job", "budget", id, "--attempts", "10"))
	require.Equal(t, "then(first())\n", r.exits(0, r.superstep("job", "answer", id)).stdout)
}
