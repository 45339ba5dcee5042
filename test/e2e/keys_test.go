package e2e_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
)

// keys runs a documented command about a key file of the test's own, and returns what it wrote.
func (r *rig) keys(file, line string) string {
	r.t.Helper()
	e := r.exits(0, r.begunWith(strings.Fields(strings.Replace(line, "prod.keys", file, 1))...).end())
	return e.stdout
}

// Keys on the command line: made, rotated and dropped under a run that waits; who lacks them is told in one line; who has none reads by
// the endpoint, while it is there.
func TestKeysOnTheCommandLine(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(r.dir, "prod.keys")
	r.keys(file, "keys new --keys prod.keys --id prod-1")
	require.Contains(t, r.keys(file, "keys list --keys prod.keys"), "prod-1  writes")
	r.flags = []string{"--keys", file}
	first := r.graphsWorker("worker-1")
	id := testserver.Queue(t)
	const marker = "marker-that-nobody-may-read"
	run := r.begunBy(os.Args[0], []string{"run", "asks", "--thread", id, "--input", string(encode(t, map[string]any{"dir": r.dir, "note": marker})), "--follow",
		"--address", r.address, "--task-queue", r.queue}, asProgram+"=1", "SUPERSTEP_KEYS="+file)
	r.exits(3, run.end())

	other := filepath.Join(r.dir, "other.keys")
	r.keys(other, "keys new --keys prod.keys --id prod-9")
	wrong := filepath.Join(r.dir, "wrong.keys")
	r.keys(wrong, "keys new --keys prod.keys --id prod-1")
	for keys, says := range map[string]string{"": "was given no keys", other: "not among the keys of", wrong: "another key than the one"} {
		for _, what := range []string{"show", "state"} {
			e := r.exits(2, r.superstep(what, id, "--keys", keys))
			require.Contains(t, e.stderr, says)
			require.NotContains(t, e.stdout+e.stderr, marker)
		}
	}

	require.Contains(t, r.keys(file, "keys rotate --keys prod.keys --in 0s --id prod-2"), "prod-2  writes")
	require.Contains(t, r.exits(0, r.superstep("state", id, "--keys", file)).stdout, marker)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte("garbage"), 0o600)) // the worker goes on, who begins is refused
	require.Contains(t, r.exits(2, r.superstep("show", id, "--keys", file)).stderr, "cannot be used")
	require.NoError(t, os.WriteFile(file, text, 0o600))

	// Who has no keys asks an endpoint, with its token.
	token := filepath.Join(r.dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("a-token-of-24-characters\n"), 0o600))
	endpoint := r.start(processes.Command{Name: "endpoint", Path: r.binary(superstepCommand), Env: environment(),
		Args: []string{"keys", "serve", "--keys", file, "--origin", "http://localhost:8233", "--addr", "127.0.0.1:0", "--token-file", token, "-o", "json"}})
	at := ""
	r.until("the endpoint says where it listens", func() bool {
		said, err := os.ReadFile(endpoint.Log())
		require.NoError(t, err)
		_, at, _ = strings.Cut(string(said), `"url":"`)
		at, _, _ = strings.Cut(at, `"`)
		return at != ""
	})
	asks := func(auth string) ended {
		return r.begunBy(r.binary(superstepCommand), append([]string{"state", id}, r.connection()...), "TEMPORAL_CODEC_ENDPOINT="+at, "TEMPORAL_CODEC_AUTH="+auth).end()
	}
	require.Contains(t, r.exits(0, asks("Bearer a-token-of-24-characters")).stdout, marker)
	require.Contains(t, r.exits(6, asks("Bearer another")).stderr, "401")
	resp, err := http.Post(at+"/decode", "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	r.kill(endpoint)
	require.Contains(t, r.exits(6, asks("Bearer a-token-of-24-characters")).stderr, "codec endpoint")

	// A worker that begins behind the rotation goes on with the run, though the endpoint is gone.
	r.kill(first)
	r.graphsWorker("worker-2")
	r.exits(0, r.superstep("update", id, "--values", `{"note":"`+marker+`-2"}`, "--keys", file))
	require.Contains(t, r.exits(0, r.superstep("state", id, "--keys", file)).stdout, marker+"-2")
	require.Contains(t, r.exits(2, r.begunWith("keys", "rotate", "--keys", file, "--drop", "prod-2").end()).stderr, "prod-2 writes")
	asked := r.exits(2, r.superstep("keys", "rotate", "--keys", file, "--drop", "prod-1"))
	require.Contains(t, asked.stderr, "needs the key: "+id, "the run that waits began with it")
	require.Contains(t, asked.stderr, "--yes")
	require.Contains(t, r.exits(0, r.begunWith("keys", "list", "--keys", file).end()).stdout, "prod-1", "nothing has changed")
	dropped := r.exits(0, r.superstep("keys", "rotate", "--keys", file, "--drop", "prod-1", "--yes")).stdout
	require.NotContains(t, dropped, "prod-1  ")
	require.Contains(t, dropped, id)
	kept, err := filepath.Glob(file + ".before-*")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Contains(t, r.exits(0, r.superstep("state", id, "--keys", kept[0])).stdout, marker+"-2", "the old file reads it all")
}
