package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
	"superstep.dev/internal/testserver"
)

// TestStarter starts a run and answers it: each time it follows the run until it asks or ends, and it ends with the run's code.
func TestStarter(t *testing.T) {
	r := newRig(t)
	r.payments()
	r.refundWorker("worker")
	thread := testserver.Queue(t)

	out := r.exits(3, r.starter("refund", "--thread", thread, "--input", `{"order_id":"o-1042"}`))
	require.Contains(t, out.stdout, "Refund 250.00 to order o-1042?")
	q := r.asked(thread)
	require.Contains(t, out.stdout, " --thread "+thread+" --question "+q.ID+" --answer true")
	out = r.exits(2, r.starter("--thread", thread, "--answer", `"perhaps"`))
	require.NotContains(t, out.stdout, "accepted")
	r.nothingMoved()

	out = r.exits(0, r.starter("--thread", thread, "--answer", "true"))
	require.Regexp(t, `(?s)^accepted  `+q.ID+`.*commit_refund +ok.*\nfinished\n`, out.stdout)
	require.NotContains(t, out.stdout, "read_order", "what was shown before is not shown again")
	require.Equal(t, payments.KeyTraffic{Requests: 1, Committed: 1}, r.refundedOnce("o-1042", 25_000))

	out = r.exits(0, r.starter("--thread", thread))
	require.Regexp(t, `(?s)read_order +ok.*\nfinished\n`, out.stdout, "from the beginning")
	out = r.exits(5, r.starter("--thread", thread, "--answer", "true"))
	require.Contains(t, out.stderr, thread)
	r.exits(4, r.starter("--thread", thread+"-none"))
}

// TestStarterApproves answers a question about a write with a key.
func TestStarterApproves(t *testing.T) {
	r := newRig(t)
	key := r.approvingWorker()
	thread := testserver.Queue(t)
	q := r.wants(thread, "o-1042")
	r.exits(5, r.starter("--thread", thread, "--approve"))
	r.nothingMoved()
	out := r.exits(0, r.starter("--thread", thread, "--approve", "--reason", "checked", "--by", "ann", "--key", key))
	require.Regexp(t, `(?s)^accepted  `+q.ID+` by ann.*\nfinished\n`, out.stdout)
	require.Equal(t, payments.KeyTraffic{Requests: 1, Committed: 1}, r.refundedOnce("o-1042", 25_000))
}
