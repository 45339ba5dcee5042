package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
)

const operators = `
control:
  - allow: operators
    op: [pause, unpause, cancel]
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
	thread := testserver.Queue(t)
	r.wants(thread, "o-1042")

	out := r.exits(5, r.superstep("pause", thread, "--by", "ann"))
	require.Contains(t, out.stderr, "no token to prove who asks")
	out = r.exits(5, r.superstep("pause", thread, "--by", "bob", "--key", key))
	require.Contains(t, out.stderr, "ann may do it")
	r.exits(0, r.superstep("pause", thread, "--by", "ann", "--key", key, "--reason", "lunch"))
	r.wait(thread, superstep.StatusPaused)
	require.NoError(t, worker.Kill())
	r.worksApproved("another", nil)

	r.exits(5, r.superstep("unpause", thread))
	r.putText("rules.yaml", strings.Replace(approvers, "ann: {permissions: [refund.write]}", "ann: {}", 1)+operators)
	r.until("the new rules are in force", func() bool { // a run that is paused is paused again, until nobody may
		return r.superstep("pause", thread, "--by", "ann", "--key", key).code == 5
	})
	out = r.exits(5, r.superstep("unpause", thread, "--by", "ann", "--key", key))
	require.Contains(t, out.stderr, `permission "refund.write" now`)
	r.putText("rules.yaml", approvers+operators)
	minted := strings.TrimSpace(r.exits(0, r.superstep("token", thread, "--op", "unpause", "--for", "ann", "--key", key)).stdout)
	r.until("the rules are as before", func() bool {
		return r.superstep("unpause", thread, "--token", minted).code == 0
	})
	r.wait(thread, superstep.StatusWaiting)
	out = r.exits(5, r.superstep("cancel", thread, "--mode", "drop", "--token", minted))
	require.Contains(t, out.stderr, "the token is for something else")
	r.exits(0, r.superstep("cancel", thread, "--mode", "drop", "--by", "ann", "--key", key))
	r.wait(thread, superstep.StatusCancelled)
	out = r.exits(0, r.superstep("audit", thread))
	for _, line := range []string{"paused", "denied unpause", "unpaused", "denied cancel", "cancelled drop"} {
		require.Contains(t, out.stdout, line)
	}
}
