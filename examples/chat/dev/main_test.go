package main

import (
	"io"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/test/processes/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

func TestDevStaysUntilCtrlC(t *testing.T) {
	dir := t.TempDir()
	p := programtest.Launch(t, dir, nil, "--any-port", "--dir", dir, "--origin", "http://localhost:3000")
	p.Until(t, `(?m)^Ctrl-C stops everything\.$`)
	require.Len(t, p.Processes(t), 5, "the server, the payments service, two workers and the web service")
	page := p.Until(t, `(?m)^The page: +(http://\S+/)chat/$`)[1]
	get := func(path, host, origin string) (status int, header http.Header, text string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+path, nil)
		require.NoError(t, err)
		if req.Host = host; origin != "" {
			req.Header.Set("Origin", origin)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, resp.Header, string(body)
	}
	status, header, text := get("chat/", "", "")
	require.Equal(t, 200, status)
	require.Contains(t, text, "<title>Chat</title>")
	require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
	for _, file := range []string{"chat.js", "protocol.js", "forms.js", "view.js"} {
		status, header, text = get("chat/"+file, "", "")
		require.Equal(t, 200, status)
		require.Contains(t, header.Get("Content-Type"), "javascript")
		require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(`, text, "text of others is only ever text")
		require.NotRegexp(t, `https?://`, text, "nothing comes from elsewhere")
	}
	for _, path := range []string{"chat/", "info"} {
		status, _, _ = get(path, "evil.example", "")
		require.Equal(t, http.StatusMisdirectedRequest, status, path)
	}
	status, header, _ = get("info", "", "http://localhost:3000")
	require.Equal(t, 200, status)
	require.Equal(t, "http://localhost:3000", header.Get("Access-Control-Allow-Origin"))
	status, _, _ = get("info", "", "http://evil.example")
	require.Equal(t, http.StatusForbidden, status)
	p.Signal(t, syscall.SIGINT)
	code, screen := p.End(t)
	require.Zero(t, code, screen)
	require.Contains(t, screen, "stopped; conversations and refunds are kept")
	require.Empty(t, p.Processes(t))
}

func TestDevRefusesWhatItDoesNotKnow(t *testing.T) {
	require.Equal(t, 2, run([]string{"--no-such-flag"}))
}
