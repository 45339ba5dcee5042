package rules_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
	"superstep.dev/approval/rules"
)

func write(t *testing.T, path, text string) {
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// known are keys of an issuer's that signed every vote.
type known struct{ approval.Keys }

func (known) Owner(string, time.Time) (approval.Owner, error) {
	return approval.Owner{Issuer: "sso"}, nil
}

// TestChangedFilesHoldAtOnce goes through what happens to files of a book that is in use.
func TestChangedFilesHoldAtOnce(t *testing.T) {
	dir := t.TempDir()
	who, what := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yml")
	write(t, who, people)
	write(t, what, "rules: [{allow: all}]")
	b, err := rules.OpenAlways(dir)
	require.NoError(t, err)
	gate := &approval.Gate{Keys: known{}, Policy: b, Directory: b}
	action, err := approval.Action{Tool: "pay", Summary: "Pay", Requester: "cleo"}.Normal()
	require.NoError(t, err)
	use := func() approval.Ruling {
		r, err := gate.Use(t.Context(), approval.UseCheck{Action: action, Decision: approval.Decision{
			Verdict: approval.VerdictApprove, Question: "q", Digest: action.Digest(), ParamsHash: action.ParamsHash,
			Votes: []approval.Vote{{By: "ana", Verdict: approval.VerdictApprove}},
		}})
		require.NoError(t, err)
		return r
	}
	first := use()
	require.True(t, first.Allowed, first.Reason)
	require.Regexp(t, "^rules:[0-9a-f]{16}$", first.Policy)

	write(t, what, "rules: [{deny: all}]")
	require.Equal(t, approval.CodePolicy, use().Code)
	require.NotEqual(t, first.Policy, use().Policy)

	for name, wreck := range map[string]func(){
		"broken":             func() { write(t, what, "rules: [{allow: all") },
		"empty":              func() { write(t, what, "") },
		"vanished":           func() { require.NoError(t, os.Remove(what)) },
		"changed by anybody": func() { require.NoError(t, os.Chmod(what, 0o666)) },
	} {
		write(t, what, "rules: [{allow: all}]")
		require.NoError(t, os.Chmod(what, 0o600))
		require.True(t, use().Allowed)
		wreck()
		r := use()
		require.Equal(t, approval.CodeUnavailable, r.Code, name)
		require.Error(t, r.Cause, name)
		require.NotContains(t, r.Reason, dir, name)
	}

	write(t, filepath.Join(dir, "new"), "rules: [{allow: all}]")
	require.NoError(t, os.Rename(filepath.Join(dir, "new"), what))
	again := use()
	require.True(t, again.Allowed, again.Reason)
	require.Equal(t, first.Policy, again.Policy, "the version follows from what the files hold")

	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, use().Cause, fs.ErrNotExist)
}

func TestOpenNeedsRules(t *testing.T) {
	_, err := rules.Open(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = rules.Open(t.TempDir())
	require.ErrorContains(t, err, "no rules")
}

// TestPeopleOfTwoFilesDiffer: the second file cannot quietly replace somebody of the first.
func TestPeopleOfTwoFilesDiffer(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), people+"rules: [{allow: all}]")
	write(t, filepath.Join(dir, "b.yaml"), "people:\n  ana: {}")
	_, err := rules.Open(dir)
	var bad *rules.SyntaxError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, filepath.Join(dir, "b.yaml"), bad.File)
	require.Contains(t, bad.Problem, filepath.Join(dir, "a.yaml")+":3")
}

// TestRewritesByRenameAreWhole asks while the file is replaced over and over: every answer is of one of its forms.
func TestRewritesByRenameAreWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	form := func(i int) string { return fmt.Sprintf("rules: [{allow: all, need: %d}]", i%2+1) }
	write(t, path, form(0))
	b, err := rules.OpenAlways(path)
	require.NoError(t, err)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if os.WriteFile(path+".new", []byte(form(i)), 0o600) != nil || os.Rename(path+".new", path) != nil {
				t.Error("cannot rewrite")
				return
			}
		}
	})
	seen := map[int]bool{}
	for i := 0; i < 200 || len(seen) < 2 && i < 100_000; i++ {
		r, err := b.Decide(t.Context(), approveRequest(`{}`, "ana", "rita"))
		require.NoError(t, err)
		require.Contains(t, []int{1, 2}, r.Need)
		seen[r.Need] = true
	}
	close(stop)
	wg.Wait()
	require.Len(t, seen, 2)
}
