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

// A thread that is made for a run is found by the run's metadata. One that was there keeps its own.
func TestAThreadThatIsMadeForARunHasItsMetadata(t *testing.T) {
	w := newWorld(t)
	mark, id, there := uuid.NewString(), uuid.NewString(), w.thread()
	body := object{"assistant_id": "steps", "input": object{"note": "x"}, "if_not_exists": "create", "on_completion": "keep", "metadata": object{"mark": mark},
		"config": object{"metadata": object{"from": "config"}}}
	for _, path := range []string{"/threads/" + id + "/runs/wait", "/threads/" + there + "/runs/wait", "/runs/wait"} {
		require.Equal(t, 200, w.ask("POST", path, body, nil))
	}
	body["metadata"] = object{"mark": "later"}
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", body, nil))
	var found []struct {
		ID       string `json:"thread_id"`
		Metadata object
	}
	require.Equal(t, 200, w.ask("POST", "/threads/search", object{"metadata": object{"mark": mark, "from": "config"}, "sort_by": "created_at", "sort_order": "asc"}, &found))
	require.Len(t, found, 2)
	require.Equal(t, id, found[0].ID)
}

// A run says which run it is where clients look for it, has its context there, and the metadata of its assistant under that of its thread.
func TestARunTellsWhatItWasAskedFor(t *testing.T) {
	w := newWorld(t)
	var a struct {
		ID string `json:"assistant_id"`
	}
	require.Equal(t, 200, w.ask("POST", "/assistants", object{"graph_id": "greet", "context": object{"user": "ann"}, "metadata": object{"team": "a", "both": "assistant"}}, &a))
	var at struct {
		ID string `json:"thread_id"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads", object{"metadata": object{"both": "thread"}}, &at))
	id := w.run(at.ID, object{"assistant_id": a.ID, "input": object{"name": "bob"}, "metadata": object{"mine": 1}})
	var run runTold
	require.Equal(t, 200, w.ask("GET", "/threads/"+at.ID+"/runs/"+id, nil, &run))
	require.Equal(t, object{"user": "ann", "run_id": id, "thread_id": at.ID, "graph_id": "greet", "assistant_id": a.ID}, run.Kwargs.Config.Configurable)
	require.Nil(t, run.Kwargs.Command)
	require.Equal(t, object{"team": "a", "both": "thread", "mine": 1.0, "graph_id": "greet", "assistant_id": a.ID}, run.Metadata)
	answer := w.run(at.ID, object{"assistant_id": "greet", "command": object{"goto": "greet"}})
	require.Equal(t, 200, w.ask("GET", "/threads/"+at.ID+"/runs/"+answer, nil, &run))
	require.Equal(t, object{"goto": "greet"}, run.Kwargs.Command)
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
