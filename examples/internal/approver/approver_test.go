package approver

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval/rules"
	"superstep.dev/approval/token"
)

// TestApprovalsArePrepared once: keys that belong together, of which nobody else reads the private one, and rules that are
// kept when they were changed.
func TestApprovalsArePrepared(t *testing.T) {
	dir := t.TempDir()
	a, err := Prepare(dir)
	require.NoError(t, err)
	info, err := os.Stat(a.Signing)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	verifies := func() {
		t.Helper()
		signer, err := token.LoadSigner(a.Signing)
		require.NoError(t, err)
		public, err := token.Open(a.Keys)
		require.NoError(t, err)
		_, err = public.Health()
		require.NoError(t, err)
		require.Equal(t, "dev", signer.Key().ID)
		_, err = rules.Open(a.Rules)
		require.NoError(t, err)
	}
	verifies()
	before, err := os.ReadFile(a.Signing)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(a.Rules, []byte("rules:\n  - deny: all\n"), 0o644))
	_, err = Prepare(dir)
	require.NoError(t, err)
	after, err := os.ReadFile(a.Signing)
	require.NoError(t, err)
	require.Equal(t, before, after)
	kept, err := os.ReadFile(a.Rules)
	require.NoError(t, err)
	require.Contains(t, string(kept), "deny: all")

	require.NoError(t, os.Remove(a.Keys))
	_, err = Prepare(dir)
	require.NoError(t, err)
	verifies()
}
