package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/job"
	"superstep.dev/thread"
)

// times counts how often attempts of a subjob began.
func (r *rig) times(subjob string) int {
	begun, err := os.ReadFile(filepath.Join(r.dir, "begun"))
	require.NoError(r.t, err)
	return strings.Count(string(begun), "/s/"+subjob+"/")
}

// lists waits until job list names a job under a status: its index is a moment behind.
func (r *rig) lists(id, status string) {
	r.t.Helper()
	r.until("the list has it as "+status, func() bool {
		return strings.Contains(r.exits(0, r.superstep("job", "list", "--leader", "foreman", "--status", status)).stdout, id)
	})
}

// TestSubJobsAreRetried: a finished subjob of a running job is done again, with what depends on it.
func TestSubJobsAreRetried(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	id := r.submitted("two")
	r.showsJob(id, "p1-then ▶")
	r.lists(id, "running")
	require.Contains(t, r.exits(4, r.superstep("job", "retry", id, "p1-none")).stderr, `no subjob "p1-none"`)
	r.exits(0, r.superstep("job", "retry", id, "p1-first", "--lesson", "drop the empty rows"))
	r.until("both began again", func() bool { return r.times("p1-first") == 2 && r.times("p1-then") == 2 })
	r.put("go")
	require.Contains(t, r.exits(0, r.superstep("job", "show", id, "--follow")).stdout, "then(first())")
	r.lists(id, "finished")
	require.NotContains(t, r.exits(0, r.superstep("job", "list", "--leader", "foreman", "--status", "failed")).stdout, id)
	require.Contains(t, r.exits(2, r.superstep("job", "retry", id, "p1-first")).stderr, "is FINISHED")
	require.Equal(t, 2, r.times("p1-first"))
}

// TestExpertsAreChanged: a job's experts are those of its leader until somebody changes them.
func TestExpertsAreChanged(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	id := r.submitted("two")
	r.showsJob(id, "p1-then ▶")
	require.Contains(t, r.exits(0, r.superstep("job", "experts", id)).stdout, "clerk")
	require.NotContains(t, r.exits(0, r.superstep("job", "experts", id, "--remove", "clerk")).stdout, "clerk")
	require.Contains(t, r.exits(4, r.superstep("job", "experts", id, "--add", "translator")).stderr, `no expert "translator"; it has worker, clerk`)
	require.Contains(t, r.exits(0, r.superstep("job", "experts", id, "--add", "clerk")).stdout, "Asks a person.")
	r.put("go")
	require.Equal(t, "then(first())\n", r.exits(0, r.superstep("job", "answer", id)).stdout)
}

// TestFollowedJobThatAsks: whoever follows a job sees what its expert asks and how to answer, and the command ends when
// nothing is left but to answer.
func TestFollowedJobThatAsks(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	id := r.submitted("asks")
	threadID := job.AttemptThread(id, "p1-ask", 1)
	out := r.exits(3, r.superstep("job", "show", id, "--follow")).stdout
	require.Contains(t, out, "which one?")
	require.Contains(t, out, " resume "+threadID+" ")
	r.until("the job shows it", func() bool { // from the index
		return strings.Contains(r.exits(0, r.superstep("job", "show", id)).stdout, "which one?")
	})
	question := r.asked(threadID)
	_, err := r.client.Resume(t.Context(), thread.ResumeRequest{Thread: threadID, Question: question.ID, Value: []byte(`"that one"`)})
	require.NoError(t, err)
	require.Contains(t, r.exits(0, r.superstep("job", "show", id, "--follow")).stdout, "that one")
	require.Equal(t, "that one\n", r.exits(0, r.superstep("job", "answer", id)).stdout)
}
