package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev/cli/keyuse"
	"superstep.dev/thread/secret"
)

// keysLine runs a command line over a key file, and returns its exit code and what it wrote.
func keysLine(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	a, out, errs := testApp(t, &script{replies: map[string]reply{}}, "")
	a.backend.keyUses = func(_ context.Context, _ client.Client, namespace, key string) (keyuse.Uses, error) {
		require.Equal(t, "default one", namespace+" "+key)
		return keyuse.Uses{Looked: 3, Runs: 2, Threads: []string{"r-1", "r-2"}}, nil
	}
	code = a.run(t.Context(), args)
	return code, out.String(), errs.String()
}

// TestKeysFromFirstToLast: made, shown, rotated and dropped, with no byte of a key on any screen.
func TestKeysFromFirstToLast(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "prod.keys")
	var screens strings.Builder
	line := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := keysLine(t, append(args, "--keys", file)...)
		require.Equal(t, want, code, "%v: %s%s", args, out, errs)
		screens.WriteString(out + errs)
		return out + errs
	}
	line(ExitOK, "keys", "new", "--id", "one")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, line(ExitUsage, "keys", "new"), "a key is never replaced")
	require.Contains(t, line(ExitOK, "keys", "rotate", "--id", "two", "--in", "1h"), "next")
	after, err := secret.File(file, secret.Options{})
	require.NoError(t, err)
	require.Len(t, after.Ring().Keys(), 2)
	require.Contains(t, string(after.Ring().Text()), keyOf(t, before), "the old key stays as it was")

	var v keysView
	require.NoError(t, json.Unmarshal([]byte(line(ExitOK, "keys", "list", "-o", "json")), &v))
	require.Equal(t, []string{"one writes", "two next"}, []string{v.Keys[0].ID + " " + v.Keys[0].State, v.Keys[1].ID + " " + v.Keys[1].State})
	line(ExitUsage, "keys", "rotate", "--id", "two")
	line(ExitUsage, "keys", "rotate", "--id", "no id")
	line(ExitUsage, "keys", "rotate", "--drop", "one")
	line(ExitUsage, "keys", "rotate", "--drop", "none")
	require.Contains(t, line(ExitOK, "keys", "rotate", "--id", "three", "--in", "0s"), "three  writes")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, line(ExitUsage, "keys", "rotate", "--drop", "one"), "2 open runs need the key: r-1, r-2; ", "it asks")
	same, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, whole, same, "and changes nothing")
	dropped := line(ExitOK, "keys", "rotate", "--drop", "one", "--yes")
	require.NotContains(t, dropped, "one  ")
	require.Contains(t, dropped, "2 open runs need the key")
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing else is left beside the file than what it was before")
	kept, err := os.ReadFile(file + ".before-20260301T120000Z")
	require.NoError(t, err)
	require.Equal(t, whole, kept)
	line(ExitUsage, "keys", "rotate", "--yes")
	for _, text := range [][]byte{before, after.Ring().Text()} {
		require.NotContains(t, screens.String(), keyOf(t, text)[:8])
	}
}

// keyOf is the first key of a file's text, in base64.
func keyOf(t *testing.T, text []byte) string {
	t.Helper()
	var all struct{ Keys []struct{ Key string } }
	require.NoError(t, json.Unmarshal(text, &all))
	return all.Keys[0].Key
}

// TestKeysThatSeveralChangeAtOnce: each change is in the file, or was refused.
func TestKeysThatSeveralChangeAtOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "prod.keys")
	code, _, _ := keysLine(t, "keys", "new", "--keys", file)
	require.Equal(t, ExitOK, code)
	var all sync.WaitGroup
	done := make([]bool, 20)
	for i := range done {
		all.Go(func() {
			code, _, errs := keysLine(t, "keys", "rotate", "--keys", file, "--id", fmt.Sprintf("n-%d", i))
			done[i] = code == ExitOK
			if code != ExitOK {
				require.Contains(t, errs, "somebody else changes the keys")
			}
		})
	}
	all.Wait()
	keys, err := secret.File(file, secret.Options{})
	require.NoError(t, err)
	text := string(keys.Ring().Text())
	for i, ok := range done {
		require.Equal(t, ok, strings.Contains(text, fmt.Sprintf(`"n-%d"`, i)), i)
	}
}

// TestKeysFromTheEnvironment, over which a flag wins.
func TestKeysFromTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"env", "flag"} {
		code, _, errs := keysLine(t, "keys", "new", "--keys", filepath.Join(dir, name), "--id", name)
		require.Equal(t, ExitOK, code, errs)
	}
	for _, c := range []struct {
		env  environment
		args []string
		want string
	}{
		{environment{envKeys: filepath.Join(dir, "env")}, nil, "env  writes"},
		{environment{envKeys: filepath.Join(dir, "env")}, []string{"--keys", filepath.Join(dir, "flag")}, "flag  writes"},
		{environment{envKeysCommand: "cat " + filepath.Join(dir, "env")}, nil, "env  writes"},
		{environment{envKeysCommand: "cat " + filepath.Join(dir, "env")}, []string{"--keys", filepath.Join(dir, "flag")}, "flag  writes"},
		{environment{envKeys: "x", envKeysCommand: "y"}, nil, "exclude each other"},
	} {
		a, out, errs := testApp(t, &script{replies: map[string]reply{}}, "")
		a.env = c.env
		a.run(t.Context(), append([]string{"keys", "list"}, c.args...))
		require.Contains(t, out.String()+errs.String(), c.want)
	}
}
