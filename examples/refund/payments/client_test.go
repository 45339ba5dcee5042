package payments_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
)

// Limits of waiting in tests: generous, since they are only reached by a bug.
const (
	waitLimit = 2 * time.Minute
	pollEvery = 5 * time.Millisecond
)

func clientOf(t *testing.T, handler http.HandlerFunc) *payments.Client {
	t.Helper()
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	client, err := payments.NewClient(web.URL)
	require.NoError(t, err)
	return client
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func TestNewClientRefusesBadURLs(t *testing.T) {
	for _, base := range []string{"", "127.0.0.1:8090", "ftp://x", "http://", "http://a b", ":"} {
		_, err := payments.NewClient(base)
		require.Error(t, err, base)
	}
}

// A wrong base URL answers 404 to everything. Taken for "no such refund", it
// would make the caller pay twice.
func TestForeign404IsNotAnAnswer(t *testing.T) {
	client := clientOf(t, http.NotFound)
	_, found, err := client.FindRefund(t.Context(), "k")
	require.False(t, found)
	requireRefused404(t, err)
	_, found, err = client.FindNotification(t.Context(), "k")
	require.False(t, found)
	requireRefused404(t, err)
}

func requireRefused404(t *testing.T, err error) {
	t.Helper()
	var refused *payments.RejectedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusNotFound, refused.Status)
	require.NotErrorIs(t, err, payments.ErrNotFound)
}

func TestStatusesAreSorted(t *testing.T) {
	for code, permanent := range map[int]bool{
		302: false, 400: true, 401: true, 408: false, 409: true, 422: true, 429: false, 500: false, 502: false, 503: false,
	} {
		client := clientOf(t, status(code, "<html>\n oops </html>"))
		_, err := client.Refund(t.Context(), "k", payments.Refund{})
		if permanent {
			requireRefusedStatus(t, err, code)
		} else {
			requireUnavailable(t, err, code)
		}
		require.ErrorContains(t, err, "<html> oops </html>")
	}
}

func requireRefusedStatus(t *testing.T, err error, code int) {
	t.Helper()
	var refused *payments.RejectedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, code, refused.Status)
}

func TestUnreadableAnswersLeaveTheOutcomeUnknown(t *testing.T) {
	for name, body := range map[string]string{
		"not JSON": "created!",
		"cut off":  `{"id":"rf-1"`,
		"endless":  string(bytes.Repeat([]byte(" "), 4<<20)) + "{}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := clientOf(t, status(201, body)).Refund(t.Context(), "k", payments.Refund{})
			requireUnavailable(t, err, 201)
		})
	}
}

func TestAnswerForAnotherKey(t *testing.T) {
	_, found, err := clientOf(t, status(200, `{"id":"rf-1","key":"other"}`)).FindRefund(t.Context(), "k")
	require.False(t, found)
	requireUnavailable(t, err, 200)
}

func TestNobodyListens(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	web.Close()
	client, err := payments.NewClient(web.URL)
	require.NoError(t, err)
	_, err = client.Order(t.Context(), "o-7")
	requireUnavailable(t, err, 0)
}

func TestContextIsHonoured(t *testing.T) {
	release := make(chan struct{})
	client := clientOf(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Refund(ctx, "k", payments.Refund{})
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = client.Refund(ctx, "k", payments.Refund{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// The transport may send a request with an Idempotency-Key again by itself when
// a kept connection breaks. Ours must not: the caller counts.
func TestWritesAreSentOnce(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	client := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{}`)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		seen[r.URL.Path]++
		mu.Unlock()
		panic(http.ErrAbortHandler)
	})
	for range 2 {
		_, err := client.Order(t.Context(), "o-7") // leaves a connection to reuse
		require.NoError(t, err)
		_, err = client.Refund(t.Context(), "k", payments.Refund{})
		requireUnavailable(t, err, 0)
		_, err = client.Order(t.Context(), "o-7")
		require.NoError(t, err)
		requireUnavailable(t, client.ReverseRefund(t.Context(), "k", "rf-1"), 0)
	}
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]int{"/refunds": 2, "/refunds/rf-1/reverse": 2}, seen)
}
