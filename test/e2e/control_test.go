package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

const operators = `
control:
  - allow: operators
    op: [pause, unpause, cancel, retry]
    by: [ann]
    permissions: [refund.write]
`

// TestControlUnderRules: who pauses a run and lets it go on proves it, also to the worker after the one that was killed, and
// may still do so then.
func TestControlUnderRules(t *testing.T) {
	r := newRig(t)
	r.payments()
	key := r.approvalFiles()
	r.putText("rules.yaml", approvers+operators)
	worker := r.worksApproved("worker", nil)
	threadID := testserver.Queue(t)
	r.wants(threadID, "o-1042")

	out := r.exits(5, r.superstep("pause", threadID, "--by", "ann"))
	require.Contains(t, out.stderr, "no token to prove who asks")
	out = r.exits(5, r.superstep("pause", threadID, "--by", "bob", "--key", key))
	require.Contains(t, out.stderr, "ann may do it")
	r.exits(0, r.superstep("pause", threadID, "--by", "ann", "--key", key, "--reason", "lunch"))
	r.wait(threadID, thread.StatusPaused)
	require.NoError(t, worker.Kill())
	r.worksApproved("another", nil)

	r.exits(5, r.superstep("unpause", threadID))
	r.putText("rules.yaml", strings.Replace(approvers, "ann: {permissions: [refund.write]}", "ann: {}", 1)+operators)
	r.until("the new rules are in force", func() bool { // a run that is paused is paused again, until nobody may
		return r.superstep("pause", threadID, "--by", "ann", "--key", key).code == 5
	})
	out = r.exits(5, r.superstep("unpause", threadID, "--by", "ann", "--key", key))
	require.Contains(t, out.stderr, `permission "refund.write" now`)
	r.putText("rules.yaml", approvers+operators)
	minted := strings.TrimSpace(r.exits(0, r.superstep("token", threadID, "--op", "unpause", "--for", "ann", "--key", key)).stdout)
	r.until("the rules are as before", func() bool {
		return r.superstep("unpause", threadID, "--token", minted).code == 0
	})
	r.wait(threadID, thread.StatusWaiting)
	out = r.exits(5, r.superstep("cancel", threadID, "--mode", "drop", "--token", minted))
	require.Contains(t, out.stderr, "the token is for something else")
	r.exits(0, r.superstep("cancel", threadID, "--mode", "drop", "--by", "ann", "--key", key))
	r.wait(threadID, thread.StatusCancelled)
	out = r.exits(0, r.superstep("audit", threadID))
	for _, line := range []string{"paused", "denied unpause", "unpaused", "denied cancel", "cancelled drop"} {
		require.Contains(t, out.stdout, line)
	}

	// What is suggested can be typed, and run takes what proves it.
	out = r.exits(5, r.superstep("fork", threadID, "--copy", "--as", threadID+"-copy"))
	require.Contains(t, out.stderr, "superstep show "+threadID+" ")
	out = r.exits(5, r.superstep("run", "refund", "--thread", threadID))
	require.Contains(t, out.stderr, "retry is not allowed")
	minted = strings.TrimSpace(r.exits(0, r.superstep("token", threadID, "--op", "retry", "--for", "ann", "--key", key)).stdout)
	r.exits(0, r.superstep("run", "refund", "--thread", threadID, "--token", minted))
	r.wait(threadID, thread.StatusWaiting)
	r.exits(0, r.superstep("cancel", threadID, "--by", "ann", "--key", key))
	r.wait(threadID, thread.StatusCancelled)
	r.exits(0, r.superstep("run", "refund", "--thread", threadID, "--by", "ann", "--key", key, "--reason", "again"))
	r.wait(threadID, thread.StatusWaiting)
	out = r.exits(0, r.superstep("audit", threadID))
	require.Contains(t, out.stdout, "again")
}
