package approval_test

import (
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/rules"
	"superstep.dev/approval/token"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// whoMay is a policy and directory as people write it.
const whoMay = `
people:
  ann: {groups: [finance], permissions: [refund.write]}
  bob: {groups: [finance], permissions: [refund.write]}
  dan: {groups: [finance], permissions: [refund.write]}
  eve: {permissions: [refund.write]}
  rita: {permissions: [refund.write]}
groups:
  finance: {}
rules:
  - allow: payments
    tool: bank.pay
    separate: true
    approvers: [group:finance]
`

// steady is a silence that a worker on a busy machine does not reach: none is lost here, and what a node does on its way is done once.
const steady = 10 * time.Second

// guarded is a thread on a server that waits for the approval of a payment, behind a gate with keys and a policy.
type guarded struct {
	*office
	t               *testing.T
	server          *rig.Server
	thread          *superstep.Thread[claims]
	q               thread.Question
	signer, retired *token.Signer // an issuer's, for everybody
	bobs            *token.Signer // bob's own
	keys            string        // their directory
	book            *rules.Book
	file            string
	gate            *approval.Gate
	stop            func() // of the worker
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{office: newOffice(), t: t, server: rig.NewServer(t), file: filepath.Join(t.TempDir(), "rules.yaml")}
	g.shape = func(a *approval.Action) { a.Permissions = []string{"refund.write"} }
	g.rules(whoMay)
	var err error
	g.book, err = rules.Open(g.file)
	require.NoError(t, err)
	g.keys = t.TempDir()
	g.signer, g.retired = g.registers(approval.Owner{Issuer: "sso"}, "now"), g.registers(approval.Owner{Issuer: "sso"}, "then",
		"Retired-At", time.Now().Add(-time.Minute).Format(time.RFC3339))
	g.bobs = g.registers(approval.Owner{Person: "bob"}, "bobs")
	keys, err := token.Open(g.keys)
	require.NoError(t, err)
	g.gate = &approval.Gate{Keys: keys, Policy: g.book, Directory: g.book}
	g.stop = g.server.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g.graph}, Gate: g.gate, LostAfter: steady})
	g.thread = g.graph.Thread(g.server.Client, g.server.Queue)
	result, err := g.thread.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"))
	require.NoError(t, err)
	require.Len(t, result.Questions, 1)
	g.q = result.Questions[0]
	return g
}

func newSigner(t *testing.T, id string) *token.Signer {
	t.Helper()
	private, _, err := token.Generate(approval.Owner{Issuer: "sso"}, id)
	require.NoError(t, err)
	signer, err := token.ParseSigner(private)
	require.NoError(t, err)
	return signer
}

// registers makes a key pair, of which the gate knows the public key, with one more header at most. Who holds the private
// one has made it an issuer's in their own file, so that it signs whatever they like.
func (g *guarded) registers(owner approval.Owner, id string, header ...string) *token.Signer {
	g.t.Helper()
	private, public, err := token.Generate(owner, id)
	require.NoError(g.t, err)
	if len(header) > 0 {
		public = withHeaders(public, header...)
	}
	require.NoError(g.t, os.WriteFile(filepath.Join(g.keys, id+".pem"), public, 0o600))
	signer, err := token.ParseSigner(withHeaders(private, "Person", "", "For", "", "Issuer", "me"))
	require.NoError(g.t, err)
	return signer
}

// withHeaders returns a PEM text with other headers: names and values in turn, "" for none.
func withHeaders(text []byte, headers ...string) []byte {
	block, _ := pem.Decode(text)
	for i := 0; i < len(headers); i += 2 {
		block.Headers[headers[i]] = headers[i+1]
		if headers[i+1] == "" {
			delete(block.Headers, headers[i])
		}
	}
	return pem.EncodeToMemory(block)
}

// rules writes the policy as it is from now on.
func (g *guarded) rules(text string) {
	g.t.Helper()
	require.NoError(g.t, os.WriteFile(g.file+".new", []byte(text), 0o600))
	require.NoError(g.t, os.Rename(g.file+".new", g.file))
}

// change replaces part of the policy, and returns when the gate has read it.
func (g *guarded) change(old, with string) {
	g.t.Helper()
	before, _ := g.book.Version(g.t.Context()) // "" of rules that cannot be read
	g.rules(strings.ReplaceAll(whoMay, old, with))
	require.Eventually(g.t, func() bool {
		now, err := g.book.Version(g.t.Context())
		return err == nil && now != before
	}, time.Minute, 20*time.Millisecond)
}

// token is one of ann's for the question, but for what shape changes.
func (g *guarded) token(s *token.Signer, shape func(*approval.Claims)) string {
	g.t.Helper()
	now := time.Now()
	c := approval.Claims{Thread: g.thread.ID(), Question: g.q.ID, Approver: "ann", Digest: g.q.Approval.Digest,
		ParamsHash: g.q.Approval.ParamsHash, IssuedAt: now, ExpiresAt: now.Add(5 * time.Minute)}
	if shape != nil {
		shape(&c)
	}
	signed, err := s.Sign(c)
	require.NoError(g.t, err)
	return signed
}

// refused are the codes of the refusals in the audit, whose chain is whole.
func (g *guarded) refused() (codes []approval.Code) {
	g.t.Helper()
	entries, chain, err := g.thread.Audit(g.t.Context())
	require.NoError(g.t, err)
	end, err := approval.VerifyEntries(approval.Chain{}, entries)
	require.NoError(g.t, err)
	require.Equal(g.t, chain, end)
	for _, e := range entries {
		if e.Kind == approval.KindRefused {
			codes = append(codes, slices.Repeat([]approval.Code{e.Code}, max(e.Count, 1))...)
		}
	}
	return codes
}

const yes = `{"verdict":"approve"}`

// TestAttacksOnAnApproval: each is refused with its own code and is in the audit, and the run waits as before.
func TestAttacksOnAnApproval(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	var want []approval.Code
	hour := time.Hour
	other := "sha256:" + strings.Repeat("0", 64)
	for _, attack := range []struct {
		name  string
		token string
		code  approval.Code
	}{
		{"no token at all", "let me in", approval.CodeMalformed},
		{"another's key", g.token(newSigner(t, "now"), nil), approval.CodeSignature},
		{"an unknown key", g.token(newSigner(t, "mine"), nil), approval.CodeSignature},
		{"a retired key", g.token(g.retired, nil), approval.CodeRetiredKey},
		{"a colleague's key", g.token(g.bobs, nil), approval.CodeWrongKey},
		{"a token of another thread", g.token(g.signer, func(c *approval.Claims) { c.Thread = "t-2" }), approval.CodeWrongThread},
		{"a token of another question", g.token(g.signer, func(c *approval.Claims) { c.Question = "q-00000000" }), approval.CodeWrongRun},
		{"a token of another action", g.token(g.signer, func(c *approval.Claims) { c.Digest = other }), approval.CodeWrongRun},
		{"a token for other parameters", g.token(g.signer, func(c *approval.Claims) { c.ParamsHash = other }), approval.CodeWrongHash},
		{"a token that is over", g.token(g.signer, func(c *approval.Claims) { c.IssuedAt, c.ExpiresAt = c.IssuedAt.Add(-hour), c.IssuedAt.Add(-hour/2) }),
			approval.CodeExpired},
		{"a clock that is five minutes fast", g.token(g.signer, func(c *approval.Claims) {
			c.IssuedAt, c.ExpiresAt = c.IssuedAt.Add(hour/12), c.ExpiresAt.Add(hour/12)
		}), approval.CodeExpired},
		{"a clock that is five minutes slow", g.token(g.signer, func(c *approval.Claims) {
			c.IssuedAt, c.ExpiresAt = c.IssuedAt.Add(-hour/12), c.IssuedAt.Add(-hour/12+time.Minute)
		}), approval.CodeExpired},
		{"somebody who is not asked", g.token(g.signer, func(c *approval.Claims) { c.Approver = "eve" }), approval.CodeNotYours},
		{"somebody whom nobody knows", g.token(g.signer, func(c *approval.Claims) { c.Approver = "mallory" }), approval.CodeUnknown},
	} {
		_, err := g.server.Resume(t.Context(), thread.ResumeRequest{Thread: g.thread.ID(), Question: g.q.ID,
			Value: json.RawMessage(yes), Token: attack.token})
		require.ErrorIs(t, err, thread.ErrAnswerRefused, attack.name)
		require.Equal(t, attack.code, refusedFor(err), "%s: %v", attack.name, err)
		want = append(want, attack.code)
		require.NotContains(t, err.Error(), attack.token, "the error shows the token")
	}

	t.Log("whoever answers as somebody else than the token's is refused")
	_, err := g.server.Resume(t.Context(), thread.ResumeRequest{Thread: g.thread.ID(), Question: g.q.ID,
		Value: json.RawMessage(yes), By: "bob", Token: g.token(g.signer, nil)})
	require.Equal(t, approval.CodeWrongPerson, refusedFor(err), "%v", err)
	want = append(want, approval.CodeWrongPerson)

	t.Log("an answer by signal without a token is held to the same")
	_, err = g.server.Resume(t.Context(), thread.ResumeRequest{Thread: g.thread.ID(), Question: g.q.ID,
		Value: json.RawMessage(yes), By: "ann", Signal: true})
	require.NoError(t, err)
	want = append(want, approval.CodeUnsigned)
	require.Eventually(t, func() bool { return slices.Contains(g.refused(), approval.CodeUnsigned) }, time.Minute, 50*time.Millisecond)

	t.Log("permissions are those of now: an approver's")
	g.change("ann: {groups: [finance], permissions: [refund.write]}", "ann: {groups: [finance]}")
	_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, nil)))
	require.Equal(t, approval.CodePermission, refusedFor(err), "%v", err)
	t.Log("and the requester's")
	g.change("rita: {permissions: [refund.write]}", "rita: {}")
	_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, nil)))
	require.Equal(t, approval.CodeRequester, refusedFor(err), "%v", err)
	t.Log("and what no rule allows is refused")
	g.change("tool: bank.pay", "tool: bank.show")
	_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, nil)))
	require.Equal(t, approval.CodePolicy, refusedFor(err), "%v", err)

	require.Empty(t, g.paid, "an attack went through")
	g.change("eve", "eva")
	once := g.token(g.signer, nil)
	result, err := g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(once))
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
	require.Len(t, g.paid, 1)
	require.ElementsMatch(t, append(want, approval.CodePermission, approval.CodeRequester, approval.CodePolicy), g.refused(),
		"a refusal is not in the audit")
	_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(once))
	require.ErrorIs(t, err, thread.ErrAnswerRefused, "a token was used twice")
	require.Len(t, g.paid, 1)
}

// TestRevokedRightBeforeTheWrite: what was approved is not done when its approver may not approve it any more.
func TestRevokedRightBeforeTheWrite(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	shape := g.shape
	g.shape = func(a *approval.Action) { // the node runs again, with its answer
		shape(a)
		g.change("ann: {groups: [finance], permissions: [refund.write]}", "ann: {groups: [finance]}")
	}
	_, err := g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, nil)))
	require.True(t, failedAs(err, "NotAllowed"), "%v", err)
	require.ErrorContains(t, err, "refund.write")
	require.Empty(t, g.paid)
	entries, _, err := g.thread.Audit(t.Context())
	require.NoError(t, err)
	last := entries[len(entries)-1]
	require.Equal(t, approval.KindNotUsed, last.Kind)
	require.Equal(t, approval.CodePermission, last.Code)
	require.Contains(t, last.Reason, "refund.write")
}

// TestToolVersionChangesWhileItWaits: what was asked about is not what the worker of now would do.
func TestToolVersionChangesWhileItWaits(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.stop()
	newer := newOfficeOf("v2")
	g.server.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{newer.graph}, Gate: g.gate})
	_, err := g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, nil)))
	require.Equal(t, approval.CodeToolVersion, refusedFor(err), "%v", err)
	require.Equal(t, []approval.Code{approval.CodeToolVersion}, g.refused())
	require.Empty(t, append(g.paid, newer.paid...))
}

// TestOneKeyIsOneVote: who has one person's key makes no quorum of two with it, and says nothing for those who asked.
func TestOneKeyIsOneVote(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.change("tool: bank.pay", "tool: bank.pay\n    need: 2")
	as := func(name string) func(*approval.Claims) { return func(c *approval.Claims) { c.Approver = name } }
	result, err := g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.bobs, as("bob"))))
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, result.Status)
	for _, name := range []string{"ann", "rita", "zoe"} {
		_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.bobs, as(name))))
		require.Equal(t, approval.CodeWrongKey, refusedFor(err), "%s: %v", name, err)
	}
	_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.bobs, as("bob"))))
	require.Equal(t, approval.CodeAlreadyGiven, refusedFor(err), "%v", err)
	require.Empty(t, g.paid)
	result, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, as("ann"))))
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
	entries, _, err := g.thread.Audit(t.Context())
	require.NoError(t, err)
	var said []string
	for _, e := range entries {
		if e.KeyID != "" {
			said = append(said, strings.Join([]string{string(e.Kind), e.Who, e.KeyID}, " "))
		}
	}
	require.Equal(t, []string{"voted bob bobs", "refused  bobs", "refused bob bobs", "answered ann now", "used ann now",
		"refused  bobs"}, said, "two more of a kind are one entry")
}

// TestSpoiltKeysCloseTheGate while a run waits, for answers and for what was approved before, and it opens again.
func TestSpoiltKeysCloseTheGate(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	file := filepath.Join(g.keys, "then.pem")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	keys := g.gate.Keys.(interface{ Health() (string, error) })
	for name, spoil := range map[string]func() error{
		"retired in another format":    func() error { return os.WriteFile(file, withHeaders(good, "Retired-At", "21.11.2026 12:00"), 0o600) },
		"emptied":                      func() error { return os.Truncate(file, 0) },
		"anybody may write it":         func() error { return os.Chmod(file, 0o666) },
		"nobody's":                     func() error { return os.WriteFile(file, withHeaders(good, "Issuer", ""), 0o600) },
		"the directory was moved away": func() error { return os.Rename(g.keys, g.keys+".away") },
	} {
		require.NoError(t, spoil(), name)
		require.Eventually(t, func() bool { _, err := keys.Health(); return err != nil }, time.Minute, 20*time.Millisecond, name)
		_, err := g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, nil)))
		require.Equal(t, approval.CodeUnavailable, refusedFor(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "keys", name)
		require.NotContains(t, err.Error(), g.keys, "people are not told where the keys are")
		_ = os.Rename(g.keys+".away", g.keys) // of the last case only
		require.NoError(t, os.WriteFile(file, good, 0o600))
		require.NoError(t, os.Chmod(file, 0o600))
		require.Eventually(t, func() bool { _, err := keys.Health(); return err == nil }, time.Minute, 20*time.Millisecond, name)
	}
	require.Empty(t, g.paid)
	_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, nil)))
	require.NoError(t, err, "mended")
	require.Len(t, g.paid, 1)
}
