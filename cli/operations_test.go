package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"superstep.dev/thread"
)

// get asks a running worker.
func get(t *testing.T, o *operations, path string) (code int, body string) {
	resp, err := http.Get("http://" + o.addr() + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestHealth(t *testing.T) {
	o, err := startOperations("127.0.0.1:0", "superstep", zap.NewNop())
	require.NoError(t, err)
	defer o.close()
	check := func(wantState string, wantCode, wantExit int) {
		t.Helper()
		code, body := get(t, o, "/healthz")
		require.Equal(t, wantCode, code)
		require.Equal(t, wantState+"\n", body)
		a, stdout, _ := testApp(t, &script{}, "")
		require.Equal(t, wantExit, a.run(t.Context(), []string{"healthcheck", "--addr", o.addr()}))
		require.Equal(t, wantState+"\n", stdout.String())
	}
	check("starting", 503, ExitFailed)
	o.health.set(healthReady)
	check("ready", 200, ExitOK)
	o.health.set(healthDraining)
	check("draining", 503, ExitFailed)
	o.health.set(healthReady)
	check("draining", 503, ExitFailed)
}

// TestHealthAsksTheServer at most once a second, and takes a refusal for an answer.
func TestHealthAsksTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer error
		asked := 0
		h := &health{}
		h.serverAnswers(func(ctx context.Context, _ *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
			asked++
			deadline, bounded := ctx.Deadline()
			require.True(t, bounded && time.Until(deadline) <= probeWithin)
			return nil, answer
		})
		check := func(want string, wantCode int) {
			t.Helper()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
			require.Equal(t, want+"\n", w.Body.String())
			require.Equal(t, wantCode, w.Code)
		}
		check("starting", 503)
		require.Zero(t, asked, "a worker that starts has not lost its server")
		h.set(healthReady)
		check("ready", 200)
		answer = status.Error(codes.Unavailable, "gone")
		check("ready", 200)
		require.Equal(t, 1, asked, "the answer holds for a second")
		for _, gone := range []error{answer, status.Error(codes.DeadlineExceeded, "slow"), errors.New("NOT_SERVING")} {
			time.Sleep(probeHolds)
			answer = gone
			check("no server", 503)
		}
		time.Sleep(probeHolds)
		answer = fmt.Errorf("health check error: %w", status.Error(codes.Unimplemented, "a proxy"))
		check("ready", 200)
		h.set(healthDraining)
		check("draining", 503)
	})
}

func TestHealthcheckOfNobody(t *testing.T) {
	o, err := startOperations("127.0.0.1:0", "superstep", zap.NewNop())
	require.NoError(t, err)
	addr := o.addr()
	o.close()
	a, _, stderr := testApp(t, &script{}, "")
	require.Equal(t, ExitFailed, a.run(t.Context(), []string{"healthcheck", "--addr", addr}))
	require.Contains(t, stderr.String(), "no worker answers at "+addr)
}

func TestMetrics(t *testing.T) {
	o, err := startOperations("127.0.0.1:0", "superstep", zap.NewNop())
	require.NoError(t, err)
	defer o.close()
	tagged := o.metrics.Handler.WithTags(map[string]string{"namespace": "default"})
	tagged.Counter("temporal_request").Inc(3)
	tagged.Gauge("temporal_num_pollers").Update(5)
	tagged.Timer("temporal_request_latency").Record(20 * time.Millisecond)
	code, body := get(t, o, "/metrics")
	require.Equal(t, 200, code)
	for _, line := range []string{
		`temporal_request_total{namespace="default"} 3`,
		`temporal_num_pollers{namespace="default"} 5`,
		`temporal_request_latency_seconds_bucket{namespace="default",le="0.02"} 1`,
		`process_cpu_seconds_total`,
		`go_goroutines`,
	} {
		require.Contains(t, body, line)
	}
	code, _ = get(t, o, "/")
	require.Equal(t, 404, code)
}

func TestOperationsOff(t *testing.T) {
	o, err := startOperations("", "superstep", zap.NewNop())
	require.NoError(t, err)
	require.Empty(t, o.addr())
	o.metrics.Handler.Counter("temporal_request").Inc(1)
	o.close()
}

func TestOperationsAddressTaken(t *testing.T) {
	o, err := startOperations("127.0.0.1:0", "superstep", zap.NewNop())
	require.NoError(t, err)
	defer o.close()
	_, err = startOperations(o.addr(), "superstep", zap.NewNop())
	require.ErrorContains(t, err, "--metrics-addr")
	_, err = startOperations("nowhere", "superstep", zap.NewNop())
	require.ErrorIs(t, err, thread.ErrBadInput)
}
