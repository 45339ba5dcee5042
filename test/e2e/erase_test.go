package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// TestErasedByTheCommandLine: a thread of many runs is erased by a process that is killed half way, and by the next one to the end. What
// is left in between is still the thread's, and what was kept of its audit is whole.
func TestErasedByTheCommandLine(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := testserver.Queue(t)
	const runs = 12
	first := ""
	for i := range runs {
		r.again("adds", threadID, map[string]string{"note": fmt.Sprint(i)})
		v := r.wait(threadID, thread.StatusFinished)
		if first == "" {
			first = v.RunID
		}
	}
	var record thread.CheckpointRecord
	require.NoError(t, json.Unmarshal([]byte(r.exits(0, r.own("checkpoint", threadID, "-o", "json").end()).stdout), &record))
	require.Equal(t, threadID, record.Thread)
	require.Equal(t, thread.ResumeAfterInput, record.ResumePolicy)
	require.NotEmpty(t, record.PlanVersion)
	require.NotEmpty(t, record.RunID)

	out := r.exits(2, r.superstep("erase", threadID))
	require.Contains(t, out.stderr, "say --yes")
	audits := filepath.Join(r.dir, "audits")
	killed := r.own("erase", threadID, "--yes", "--audit", "keep", "--audit-dir", audits)
	r.until("a run has gone", func() bool {
		_, err := r.temporal.DescribeWorkflowExecution(t.Context(), threadID, first)
		_, gone := err.(*serviceerror.NotFound)
		return gone
	})
	_ = killed.cmd.Process.Kill()
	killed.end()
	kept, err := os.ReadDir(audits)
	require.NoError(t, err)
	require.Len(t, kept, 1)

	out = r.exits(0, r.own("erase", threadID, "--yes", "--audit", "keep", "--audit-dir", audits).end())
	t.Log(out.stdout)
	r.exits(4, r.superstep("show", threadID))
	out = r.exits(0, r.superstep("erase", threadID, "--yes"))
	require.Contains(t, out.stdout, "nothing is there of "+threadID)
	_, err = os.Stat(filepath.Join(audits, threadID+".audit.jsonl"))
	require.NoError(t, err)

	waiting := r.stopped()
	out = r.exits(2, r.superstep("erase", waiting, "--yes"))
	require.Contains(t, out.stderr, "--cancel")
	out = r.exits(0, r.superstep("erase", waiting, "--yes", "--cancel", "--reason", "asked by the customer"))
	require.Contains(t, out.stdout, "erased  "+waiting)
}
