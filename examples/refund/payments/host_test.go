package payments

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHosts(t *testing.T) {
	reached := 0
	guarded := guardHost(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }), "payments", "dev.example.com")
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:8233": 200, "10.1.2.3:80": 200, "[::1]:8233": 200, "[::1]": 200, "::1": 200,
		"localhost": 200, "LOCALHOST:8233": 200, "localhost.": 200, "payments:8090": 200, "Dev.Example.com": 200,
		"evil.example.com": 403, "evil.example.com:8233": 403, "localhost.evil.com": 403, "127.0.0.1.evil.com": 403,
		"127.0.0.1.nip.io:8233": 403, "payments.evil.com": 403, "": 403, ":8233": 403, "2130706433": 403, "0x7f.1": 403,
		"a b": 403, "localhost:1:2": 403,
	} {
		before := reached
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		if w.Code != want || (reached > before) != (want == 200) {
			body, _ := io.ReadAll(w.Body)
			t.Errorf("Host %q: %d %s", host, w.Code, body)
		}
	}
}
