package main_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// as asks the server at url for a page under another host's name, as a browser does
// to which that name resolves to the server's address.
func as(t *testing.T, host, url string) (code int, page string, cookies []*http.Cookie) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t, startTimeout), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body), response.Cookies()
}

// A page of another site, whose name resolves to this machine, can neither read nor
// change anything, and gets no token with which it could.
func TestWebUIAnswersNoForeignHost(t *testing.T) {
	t.Parallel()
	s := start(t, ":memory:", "--host", "dev.example.com")
	port := s.ui[strings.LastIndexByte(s.ui, ':'):]
	for _, path := range []string{"/", "/api/v1/namespaces", "/api/v1/settings", "/healthz"} {
		for _, host := range []string{"evil.example.org" + port, "127.0.0.1.evil.example.org" + port, "evil.example.org"} {
			code, page, cookies := as(t, host, s.ui+path)
			require.Equal(t, http.StatusForbidden, code, "%s%s", host, path)
			require.Contains(t, page, "not known here")
			require.Empty(t, cookies)
		}
		for _, host := range []string{"localhost" + port, "127.0.0.1" + port, "[::1]" + port, "dev.example.com" + port} {
			code, _, _ := as(t, host, s.ui+path)
			require.Equal(t, http.StatusOK, code, "%s%s", host, path)
		}
	}
	require.Zero(t, s.stop(t))
	require.Empty(t, s.stderr.String(), "on loopback there is nothing to warn of")
}

// Whoever opens the server to others is told what that means.
func TestWarnsOfOpenAddresses(t *testing.T) {
	t.Parallel()
	s := start(t, ":memory:", "--ip", "0.0.0.0", "--headless")
	require.Zero(t, s.stop(t))
	require.Contains(t, s.stderr.String(), "devserver: warning: it listens on every interface of this machine, without TLS or authentication")
}
