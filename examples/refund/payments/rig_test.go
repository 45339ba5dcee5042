package payments_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
)

// rig is the service on a real socket, with its client.
type rig struct {
	*payments.Client
	server *payments.Server
	web    *httptest.Server
	file   string
}

func newRig(t *testing.T, config payments.ServerConfig) *rig {
	t.Helper()
	return openRig(t, filepath.Join(t.TempDir(), "payments.db"), config)
}

func openRig(t *testing.T, file string, config payments.ServerConfig) *rig {
	t.Helper()
	store, err := payments.OpenStore(t.Context(), file)
	require.NoError(t, err)
	server := payments.NewServer(store, config)
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Stop()
		web.Close()
		require.NoError(t, store.Close())
	})
	client, err := payments.NewClient(web.URL)
	require.NoError(t, err)
	return &rig{Client: client, server: server, web: web, file: file}
}

// send makes a raw request, for what the client does not let through.
func (r *rig) send(t *testing.T, method, path, key, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.web.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	if key != "" {
		request.Header.Set(payments.KeyHeader, key)
	}
	response, err := r.web.Client().Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// requireRefused checks for a permanent refusal with this status and code.
func requireRefused(t *testing.T, err error, status int, code string) {
	t.Helper()
	var refused *payments.RejectedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, status, refused.Status)
	require.Equal(t, code, refused.Code)
	require.NotEmpty(t, refused.Message)
}

// requireUnavailable checks for a transient error with this status; 0 is none.
func requireUnavailable(t *testing.T, err error, status int) {
	t.Helper()
	var away *payments.UnavailableError
	require.ErrorAs(t, err, &away)
	require.Equal(t, status, away.Status)
}

func refund(t *testing.T, c *payments.Client, key, order string, amount int64) payments.Receipt {
	t.Helper()
	receipt, err := c.Refund(t.Context(), key, payments.Refund{OrderID: order, Amount: amount})
	require.NoError(t, err)
	return receipt
}

func stats(t *testing.T, c *payments.Client) payments.Stats {
	t.Helper()
	got, err := c.Stats(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	return got
}
