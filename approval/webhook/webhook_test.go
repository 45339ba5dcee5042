package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
	"superstep.dev/approval/webhook"
)

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	other  = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

// post is one POST that a receiver got.
type post struct {
	header http.Header
	body   []byte
}

// receiver answers POSTs, one after the other, with these statuses, and then with 204.
func receiver(t *testing.T, statuses ...int) (url string, got *[]post) {
	t.Helper()
	got = &[]post{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*got = append(*got, post{r.Header, body})
		status := http.StatusNoContent
		if len(statuses) > 0 {
			status, statuses = statuses[0], statuses[1:]
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/in?token=hush", got
}

func newNotifier(t *testing.T, urls ...string) *webhook.Notifier {
	t.Helper()
	n, err := webhook.New(webhook.Config{URLs: urls, Secret: secret, Link: "https://ask.example/{thread}?q={question}"})
	require.NoError(t, err)
	return n
}

func notice() approval.Notice {
	return approval.Notice{Kind: approval.KindAsked, At: time.Unix(1_700_000_000, 0).UTC(), Thread: "r 7", Graph: "refund",
		Node: "pay", Question: "q-1a2b3c4d", Summary: "Refund 250.00", Risk: approval.RiskHigh}.Name()
}

func TestPosted(t *testing.T) {
	url, got := receiver(t)
	n := newNotifier(t, url)
	require.Len(t, n.Targets(), 1)
	require.NotContains(t, n.Targets()[0], "hush")
	require.NoError(t, n.Notify(t.Context(), n.Targets()[0], notice()))
	require.Len(t, *got, 1)
	p := (*got)[0]
	require.Equal(t, notice().ID, p.header.Get("webhook-id"))
	require.JSONEq(t, `{"id": "`+notice().ID+`", "kind": "asked", "at": "2023-11-14T22:13:20Z", "thread": "r 7", "graph": "refund",
		"node": "pay", "question": "q-1a2b3c4d", "summary": "Refund 250.00", "risk": "high",
		"url": "https://ask.example/r%207?q=q-1a2b3c4d"}`, string(p.body))

	verified, err := webhook.Verify(secret, p.header, p.body)
	require.NoError(t, err)
	require.Equal(t, notice(), verified)
}

// TestForged: nothing but what was posted is verified.
func TestForged(t *testing.T) {
	url, got := receiver(t)
	n := newNotifier(t, url)
	require.NoError(t, n.Notify(t.Context(), n.Targets()[0], notice()))
	p := (*got)[0]
	for name, forge := range map[string]func(http.Header, []byte) (string, []byte){
		"another secret":    func(_ http.Header, b []byte) (string, []byte) { return other, b },
		"another body":      func(_ http.Header, b []byte) (string, []byte) { return secret, append(b, ' ') },
		"another id":        func(h http.Header, b []byte) (string, []byte) { h.Set("webhook-id", "n-1"); return secret, b },
		"no signature":      func(h http.Header, b []byte) (string, []byte) { h.Del("webhook-signature"); return secret, b },
		"another algorithm": func(h http.Header, b []byte) (string, []byte) { h.Set("webhook-signature", "v0,abc"); return secret, b },
		"an old one": func(h http.Header, b []byte) (string, []byte) {
			h.Set("webhook-timestamp", "1700000000")
			return secret, b
		},
		"no secret": func(_ http.Header, b []byte) (string, []byte) { return "", b },
	} {
		header := p.header.Clone()
		key, body := forge(header, append([]byte(nil), p.body...))
		_, err := webhook.Verify(key, header, body)
		require.Error(t, err, name)
	}
}

// TestRefusals tells those that end the attempts from those that pass, and from none of them a secret.
func TestRefusals(t *testing.T) {
	url, _ := receiver(t, 503, 429, 400)
	n := newNotifier(t, url)
	for _, permanent := range []bool{false, false, true} {
		err := n.Notify(t.Context(), n.Targets()[0], notice())
		var refused *webhook.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, permanent, refused.Permanent(), err)
		require.NotContains(t, err.Error(), "hush")
	}
	err := n.Notify(t.Context(), "nobody", notice())
	require.ErrorContains(t, err, "no receiver any more")

	gone := httptest.NewServer(nil)
	gone.Close()
	n = newNotifier(t, gone.URL+"/hush")
	err = n.Notify(t.Context(), n.Targets()[0], notice())
	require.ErrorContains(t, err, "no answer")
	require.NotContains(t, err.Error(), "hush")
}

// TestRedirects: what is posted goes to no other host.
func TestRedirects(t *testing.T) {
	elsewhere, leaked := receiver(t)
	path := ""
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, path, http.StatusTemporaryRedirect)
		case "/moved":
			w.WriteHeader(http.StatusOK)
		}
	}))
	t.Cleanup(home.Close)
	n := newNotifier(t, home.URL+"/")
	path = elsewhere
	err := n.Notify(t.Context(), n.Targets()[0], notice())
	require.ErrorContains(t, err, "another host")
	require.Empty(t, *leaked)
	path = "/moved"
	require.NoError(t, n.Notify(t.Context(), n.Targets()[0], notice()))
	path = "/"
	require.ErrorContains(t, n.Notify(t.Context(), n.Targets()[0], notice()), "more than 3 times")
}

// TestATardyReceiver holds nobody longer than its caller waits.
func TestATardyReceiver(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	n := newNotifier(t, server.URL)
	err := n.Notify(ctx, n.Targets()[0], notice())
	require.True(t, errors.Is(err, context.DeadlineExceeded), err)
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]webhook.Config{
		"the secret is not":   {URLs: []string{"https://a.example"}, Secret: "hush"},
		"openssl rand":        {URLs: []string{"https://a.example"}, Secret: "whsec_aHVzaA=="},
		"there are 0 URLs":    {Secret: secret},
		"URL 2 is no http":    {URLs: []string{"https://a.example", "file:///hush"}, Secret: secret},
		"URL 2 is given":      {URLs: []string{"https://a.example", "https://a.example"}, Secret: secret},
		"there are 21 URLs: ": {URLs: strings.Split(strings.Repeat("https://a.example,", 20), ","), Secret: secret},
	} {
		_, err := webhook.New(c)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hush")
	}
}
