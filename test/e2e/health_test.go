package e2e_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// A worker whose server is killed is not ready, and is again once the server is back.
func TestHealthFollowsTheServer(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, testserver.Options{})
	r := newRigAt(t, server.Address())
	metrics := testserver.FreeAddress()
	worker := r.program("worker")
	worker.Args = append(worker.Args, "--metrics-addr", metrics)
	r.start(worker)

	says := func(want string, code int) {
		t.Helper()
		r.until("/healthz says "+want, func() bool {
			resp, err := http.Get("http://" + metrics + "/healthz")
			require.NoError(t, err)
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			return resp.StatusCode == code && strings.TrimSpace(string(text)) == want
		})
	}
	says("ready", 200)
	r.exits(0, r.superstep("healthcheck", "--addr", metrics))
	require.NoError(t, server.Kill())
	says("no server", 503)
	r.exits(1, r.superstep("healthcheck", "--addr", metrics))
	require.NoError(t, server.Restart())
	says("ready", 200)
	r.awaitPoller()
	threadID := r.begin("adds", map[string]string{"note": "after the restart"})
	r.wait(threadID, thread.StatusFinished)
}
