package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	p, err := NewOpenAI(Config{Model: "m", BaseURL: "http://user:" + testKey + "@" + l.Addr().String() + "/v1", APIKey: testKey})
	require.NoError(t, err)
	_, err = p.Plan(t.Context(), request())
	var e *Error
	require.ErrorAs(t, err, &e)
	require.False(t, e.Permanent())
	require.ErrorAs(t, err, new(*net.OpError))
	keyless(t, err)
}

// TestKeyIsNowhere: endpoints that repeat the key do not get it into an error.
func TestKeyIsNowhere(t *testing.T) {
	long := strings.Repeat("x", 490) + testKey // cut in two if it were cut first
	for name, r := range map[string]reply{
		"error":        fails(401, "invalid_api_key", "Incorrect API key provided: "+testKey),
		"long error":   fails(400, "", long),
		"other shape":  says(500, "text/plain", "Authorization: Bearer "+testKey),
		"in stream":    streams(event(map[string]any{"error": "key " + testKey})),
		"as JSON":      says(200, "application/json", `{"choices": `+testKey+`}`),
		"in an answer": streams(chunk(`{"subjobs": {"`+testKey+`": 1}}`, "stop"), done),
		"in a refusal": streams(event(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"refusal": testKey}, "finish_reason": "stop"}}})),
		"redirect":     says(302, "text/plain", "", "Location", "http://elsewhere.invalid/"+testKey),
		"cut":          cut(),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newStub(t, r).planner(t).Plan(t.Context(), request())
			require.Error(t, err)
			keyless(t, err)
		})
	}
}

// keyless looks for the key in everything that may become of an error: texts, values, JSON, logs, and what it wraps.
func keyless(t *testing.T, err error) {
	for ; err != nil; err = errors.Unwrap(err) {
		data, _ := json.Marshal(err)
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Error("failed", "error", err)
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err), string(data), log.String()} {
			require.NotContains(t, text, testKey)
			require.NotContains(t, text, "sk-very")
		}
	}
}
