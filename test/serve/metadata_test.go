package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// New metadata changes no state: a thread's state_updated_at stays, and so does its place among threads that are sorted by it. Who wants no
// body of the answer has none.
func TestMetadataIsNoState(t *testing.T) {
	w := newWorld(t)
	mark := uuid.NewString()
	type thread struct {
		ID       string    `json:"thread_id"`
		Updated  time.Time `json:"updated_at"`
		State    time.Time `json:"state_updated_at"`
		Metadata object
	}
	var first, second, now thread
	body := object{"metadata": object{"mark": mark}}
	require.Equal(t, 200, w.ask("POST", "/threads", body, &first))
	require.Equal(t, 200, w.ask("POST", "/threads", body, &second))

	patch := w.request("PATCH", "/threads/"+first.ID, strings.NewReader(`{"metadata": {"n": 1}}`))
	patch.Header.Set("Prefer", "return=minimal")
	resp, err := http.DefaultClient.Do(patch)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 204, resp.StatusCode)

	require.Equal(t, 200, w.ask("GET", "/threads/"+first.ID, nil, &now))
	require.Equal(t, object{"mark": mark, "n": 1.0}, now.Metadata)
	require.Equal(t, first.State, now.State)
	require.True(t, now.Updated.After(first.Updated))
	newest := func(by string) string {
		var found []thread
		require.Equal(t, 200, w.ask("POST", "/threads/search", object{"metadata": body["metadata"], "sort_by": by}, &found))
		return found[0].ID
	}
	require.Equal(t, []string{first.ID, second.ID}, []string{newest("updated_at"), newest("state_updated_at")})
	require.Equal(t, 200, w.ask("POST", "/threads/"+first.ID+"/runs/wait", object{"assistant_id": "steps", "input": object{"note": "x"}}, nil))
	require.Equal(t, first.ID, newest("state_updated_at"))
}
