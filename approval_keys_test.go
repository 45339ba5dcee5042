package superstep_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
)

// TestOneKeyIsOneVote: who has one person's key makes no quorum of two with it, and says nothing for those who asked.
func TestOneKeyIsOneVote(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.change("tool: bank.pay", "tool: bank.pay\n    need: 2")
	as := func(name string) func(*approval.Claims) { return func(c *approval.Claims) { c.Approver = name } }
	result, err := g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.bobs, as("bob"))))
	require.NoError(t, err)
	require.Equal(t, superstep.StatusWaiting, result.Status)
	for _, name := range []string{"ann", "rita", "zoe"} {
		_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.bobs, as(name))))
		require.Equal(t, approval.CodeWrongKey, refusedFor(err), "%s: %v", name, err)
	}
	_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.bobs, as("bob"))))
	require.Equal(t, approval.CodeAlreadyGiven, refusedFor(err), "%v", err)
	require.Empty(t, g.paid)
	result, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, as("ann"))))
	require.NoError(t, err)
	require.Equal(t, superstep.StatusFinished, result.Status)
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
		require.Eventually(t, func() bool { _, err := keys.Health(); return err != nil }, 10*time.Second, 20*time.Millisecond, name)
		_, err := g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, nil)))
		require.Equal(t, approval.CodeUnavailable, refusedFor(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "keys", name)
		require.NotContains(t, err.Error(), g.keys, "people are not told where the keys are")
		_ = os.Rename(g.keys+".away", g.keys) // of the last case only
		require.NoError(t, os.WriteFile(file, good, 0o600))
		require.NoError(t, os.Chmod(file, 0o600))
		require.Eventually(t, func() bool { _, err := keys.Health(); return err == nil }, 10*time.Second, 20*time.Millisecond, name)
	}
	require.Empty(t, g.paid)
	_, err = g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, nil)))
	require.NoError(t, err, "mended")
	require.Len(t, g.paid, 1)
}
