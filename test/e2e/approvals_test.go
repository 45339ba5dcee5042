package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
	"superstep.dev/thread"
)

const approvers = `
people:
  ann: {permissions: [refund.write]}
  bob: {permissions: [refund.write]}
  rita: {permissions: [refund.write]}
rules:
  - allow: refunds
    tool: payments.refund
    separate: true
`

// approvingWorker starts a worker whose refunds need approvals, and returns the private key that approvers sign with.
func (r *rig) approvingWorker() (key string) {
	r.t.Helper()
	r.payments()
	key = r.approvalFiles()
	r.worksApproved("worker", nil)
	return key
}

// approvalFiles writes what such a worker reads: the keys of a service that signs for everybody, and ann's own.
func (r *rig) approvalFiles() (key string) {
	r.t.Helper()
	r.exits(0, r.superstep("signing-key", "e2e", "--issuer", "--dir", r.dir))
	r.exits(0, r.superstep("signing-key", "ann", "--dir", r.dir))
	r.putText("rules.yaml", approvers)
	r.exits(0, r.superstep("signing-key", "audit", "--worker", "--dir", r.dir))
	return filepath.Join(r.dir, "e2e.key")
}

// worksApproved starts such a worker.
func (r *rig) worksApproved(name string, env []string, args ...string) *processes.Process {
	r.t.Helper()
	args = append(args, "--approval-keys", r.dir, "--approval-rules", filepath.Join(r.dir, "rules.yaml"),
		"--audit-key", filepath.Join(r.dir, "audit.key"))
	p := r.start(processes.Command{Name: name, Path: r.binary(workerCommand), Args: append(r.working(), args...),
		Env: environment(append(env, "PAYMENTS_URL="+r.moneyURL, "REFUND_APPROVALS=1")...)})
	r.awaitPoller()
	return p
}

// wants starts a refund by rita, and returns its question.
func (r *rig) wants(thread, order string) thread.Question {
	r.t.Helper()
	out := r.exits(3, r.superstep("run", "refund", "--thread", thread, "--input", `{"order_id":"`+order+`"}`, "--requester", "rita", "--follow"))
	q := r.asked(thread)
	require.Contains(r.t, out.stdout, "Next: ")
	require.Contains(r.t, out.stdout, " question "+thread+" "+q.ID)
	return q
}

// TestApproversWork: what waits is found, looked at and answered from the command line, once; who must not is refused, and
// the audit has all of it.
func TestApproversWork(t *testing.T) {
	r := newRig(t)
	key := r.approvingWorker()
	threadID := testserver.Queue(t)
	q := r.wants(threadID, "o-1042")
	require.Equal(t, "commit_refund", q.Node)

	r.until("the inbox lists it", func() bool {
		return strings.Contains(r.exits(0, r.superstep("inbox", "--graph", "refund", "--limit", "1000")).stdout, q.ID+"  "+threadID)
	})
	out := r.exits(0, r.superstep("question", threadID, q.ID))
	require.Contains(t, out.stdout, `"amount": 25000`)
	require.Contains(t, out.stdout, "requester  rita")
	require.Contains(t, out.stdout, "then it is denied")

	out = r.exits(5, r.superstep("approve", threadID, q.ID, "--by", "ann"))
	require.Contains(t, out.stderr, "token", "without one nothing counts")
	out = r.exits(5, r.superstep("approve", threadID, q.ID, "--by", "rita", "--key", key))
	require.Contains(t, out.stderr, "rita asks for it")
	out = r.exits(5, r.superstep("approve", threadID, q.ID, "--by", "zoe", "--key", key))
	require.Contains(t, out.stderr, "zoe")
	own := filepath.Join(r.dir, "ann.key")
	out = r.exits(2, r.superstep("approve", threadID, q.ID, "--by", "bob", "--key", own))
	require.Contains(t, out.stderr, "is ann's, and signs for nobody else")
	anns := strings.TrimSpace(r.exits(0, r.superstep("token", threadID, q.ID, "--key", own)).stdout)
	out = r.exits(5, r.superstep("approve", threadID, q.ID, "--by", "bob", "--token", anns))
	require.Contains(t, out.stderr, `says that it is from "bob", and its token is ann's`)
	forged := filepath.Join(r.dir, "forged.key") // ann makes her key one of a service's, in her own file
	text, err := os.ReadFile(own)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(forged, []byte(strings.Replace(string(text), "Person: ann", "Issuer: ann", 1)), 0o600))
	out = r.exits(5, r.superstep("approve", threadID, q.ID, "--by", "bob", "--key", forged))
	require.Contains(t, out.stderr, `is ann's, and it signs for "bob"`)
	r.nothingMoved()

	minted := r.exits(0, r.superstep("token", threadID, q.ID, "--ttl", "2m", "--key", own))
	out = r.exits(0, r.superstep("approve", threadID, q.ID, "--reason", "checked", "--token", strings.TrimSpace(minted.stdout)))
	require.Contains(t, out.stdout, "accepted  "+q.ID)
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, payments.KeyTraffic{Requests: 1, Committed: 1}, r.refundedOnce("o-1042", 25_000))
	r.exits(5, r.superstep("approve", threadID, q.ID, "--by", "bob", "--key", key))

	out = r.exits(0, r.superstep("audit", threadID, "--head"))
	require.Contains(t, out.stdout, "verified  ")
	out = r.exits(0, r.superstep("audit", threadID, "--export", "-"))
	exported, err := approval.ReadExport(strings.NewReader(out.stdout))
	require.NoError(t, err)
	require.NotEmpty(t, exported.Signed)
	var kinds []approval.Kind
	for _, e := range exported.Entries {
		kinds = append(kinds, e.Kind)
	}
	require.Contains(t, kinds, approval.KindViewed)
	require.Equal(t, approval.KindAsked, kinds[0])
	require.Equal(t, approval.KindUsed, kinds[len(kinds)-1])
	r.provenElsewhere(threadID)
}

// provenElsewhere exports an audit, and proves it where there is no server: as it is, and not once it was changed.
func (r *rig) provenElsewhere(thread string) {
	r.t.Helper()
	file, keys := filepath.Join(r.dir, "audit.jsonl"), filepath.Join(r.dir, "audit.pem")
	out := r.exits(0, r.superstep("audit", thread, "--export", file))
	require.Contains(r.t, out.stdout, "exported  ")
	offline := []string{"--address", "127.0.0.1:1", "audit", "--verify", file, "--public-keys", keys}
	out = r.exits(0, r.begunWith(offline...).end())
	require.Contains(r.t, out.stdout, "signed    by audit with the key ")
	text, err := os.ReadFile(file)
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(file, []byte(strings.Replace(string(text), `"who":"ann"`, `"who":"bob"`, 1)), 0o600))
	out = r.exits(1, r.begunWith(offline...).end())
	require.Contains(r.t, out.stderr, "the audit is broken at entry ")
	lines := strings.SplitAfter(string(text), "\n")
	require.NoError(r.t, os.WriteFile(file, []byte(strings.Join(lines[:len(lines)-2], "")), 0o600))
	out = r.exits(1, r.begunWith(offline...).end())
	require.Contains(r.t, out.stderr, "no signed head")
}

// TestTheSecondAnswerIsTold who was first, while the run still asks something else.
func TestTheSecondAnswerIsTold(t *testing.T) {
	r := newRig(t)
	key := r.approvingWorker()
	threadID := testserver.Queue(t)
	first := r.wants(threadID, "o-1042")
	r.exits(0, r.superstep("edit", threadID, first.ID, "--params", `{"order_id":"o-1042","amount":20000}`,
		"--key", filepath.Join(r.dir, "ann.key")))
	second := r.asked(threadID)
	require.NotEqual(t, first.ID, second.ID, "other parameters are another question")
	out := r.exits(5, r.superstep("approve", threadID, first.ID, "--by", "bob", "--key", key))
	require.Contains(t, out.stderr, "already answered by ann at ")

	out = r.exits(0, r.superstep("question", threadID))
	require.Contains(t, out.stdout, "/amount  25000")
	require.Contains(t, out.stdout, "→ 20000")
	r.exits(0, r.superstep("approve", threadID, "--by", "bob", "--key", key))
	r.wait(threadID, thread.StatusFinished)
	require.Equal(t, payments.KeyTraffic{Requests: 1, Committed: 1}, r.refundedOnce("o-1042", 20_000))
}

// TestTwoApproveInTheSameInstant: one of them wins, and the other is told who did, whether the run is still there to say so
// or has ended.
func TestTwoApproveInTheSameInstant(t *testing.T) {
	r := newRig(t)
	key := r.approvingWorker()
	for n := range 3 {
		threadID, order := testserver.Queue(t), r.order(n, 25_000)
		q := r.wants(threadID, order)
		ann := r.begun("approve", threadID, q.ID, "--by", "ann", "--key", key)
		bob := r.begun("approve", threadID, q.ID, "--by", "bob", "--key", key)
		first, second, winner := ann.end(), bob.end(), "ann"
		if first.code != 0 {
			first, second, winner = second, first, "bob"
		}
		require.Contains(t, r.exits(0, first).stdout, "accepted  "+q.ID)
		require.Contains(t, r.exits(5, second).stderr, "already answered by "+winner+" at ")
		r.wait(threadID, thread.StatusFinished)
		r.refundedOnce(order, 25_000)
	}
}

func TestARejectionMovesNothing(t *testing.T) {
	r := newRig(t)
	r.approvingWorker()
	threadID := testserver.Queue(t)
	q := r.wants(threadID, "o-7")
	out := r.exits(0, r.superstep("reject", threadID, q.ID, "--key", filepath.Join(r.dir, "ann.key"), "--reason", "wrong order"))
	require.Contains(t, out.stdout, "rejected  "+q.ID+" by ann")
	r.wait(threadID, thread.StatusFinished)
	r.nothingMoved()
	require.Equal(t, []string{"paid 250.00", "declined", "customer told"}, value[[]string](r, threadID, "log"))
}
