package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// runTold is what is told of a run.
type runTold struct {
	Status   string
	Metadata object
	Kwargs   struct {
		Command object
		Config  struct{ Configurable object }
	}
	Error *struct{ Error string }
}

// A webhook is told what a reader of the run is: also of the thread's metadata, and that the run was cancelled.
func TestAWebhookIsToldOfACancelledRun(t *testing.T) {
	w := newWorld(t, "--webhooks-anywhere")
	got := make(chan runTold, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var one runTold
		text, err := io.ReadAll(r.Body)
		if err == nil && json.Unmarshal(text, &one) == nil {
			got <- one
		}
	}))
	defer hook.Close()
	var at struct {
		ID string `json:"thread_id"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads", object{"metadata": object{"of": "thread"}}, &at))
	id := w.run(at.ID, object{"assistant_id": "slow", "input": object{"steps": 1, "delay_ms": 60_000}, "webhook": hook.URL, "metadata": object{"mine": 1}})
	require.Equal(t, 202, w.ask("POST", "/threads/"+at.ID+"/runs/"+id+"/cancel", nil, nil))
	one := <-got
	require.Equal(t, "interrupted", one.Status)
	require.Equal(t, []any{"thread", 1.0}, []any{one.Metadata["of"], one.Metadata["mine"]})
	require.NotNil(t, one.Error)
	require.Equal(t, "UserInterrupt", one.Error.Error)
}

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
