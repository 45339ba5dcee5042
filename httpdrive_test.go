package superstep_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

// TestHTTP drives the handler of Example_http as a browser does, on every runtime.
func TestHTTP(t *testing.T) {
	g := refundGraph()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		web := httptest.NewServer((&refundsAPI{g, rt}).Handler())
		t.Cleanup(web.Close)
		url := web.URL + "/refunds/" + graphtest.ThreadID(t)
		call := func(method, url, body string, header ...string) (int, string) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
			require.NoError(t, err)
			if len(header) > 0 {
				req.Header.Set(header[0], header[1])
			}
			response, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			return response.StatusCode, string(text)
		}
		status, _ := call(http.MethodGet, url+"/events", "")
		require.Equal(t, http.StatusOK, status)
		status, body := call(http.MethodPut, url, `{"order":"o-7"}`)
		require.Equal(t, http.StatusOK, status, body)
		_, events := call(http.MethodGet, url+"/events", "")
		id, question := "", ""
		for lines := bufio.NewScanner(strings.NewReader(events)); lines.Scan(); {
			if value, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = value
			}
			if at := strings.Index(lines.Text(), "q-"); at >= 0 {
				question = lines.Text()[at : at+len("q-")+8]
			}
		}
		require.NotEmpty(t, question, events)
		for _, repeated := range []bool{false, true} {
			status, body = call(http.MethodPost, url+"/answers", `{"`+question+`":true}`, "Idempotency-Key", "k-1")
			require.Equal(t, http.StatusOK, status, body)
			assert.Equal(t, repeated, strings.Contains(body, `"repeated":true`), body)
			_, events = call(http.MethodGet, url+"/events", "", "Last-Event-ID", id)
			assert.Equal(t, 2, strings.Count(events, "id: "), events)
			assert.Contains(t, events, "event: custom\ndata: \"decided\"")
			assert.Contains(t, events, `data: {"ask":{"result":"refunded"}}`)
		}
		status, _ = call(http.MethodPost, url+"/answers", `{"`+question+`":false}`)
		assert.Equal(t, http.StatusConflict, status)
	}, g)
}
