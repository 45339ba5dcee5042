package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// said is how a request is refused.
func (w *world) said(method, path, body string) (status int, detail string) {
	resp, err := http.DefaultClient.Do(w.request(method, path, strings.NewReader(body)))
	require.NoError(w, err)
	defer func() { require.NoError(w, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(w, err)
	var said struct{ Detail string }
	require.NoError(w, json.Unmarshal(text, &said), "%s", text)
	return resp.StatusCode, said.Detail
}

// What is refused is refused in words of the protocol, once, with what the caller has sent.
func TestRefusalsSayWhatIsWrong(t *testing.T) {
	w := newStoreWorld(t, t.TempDir()+"/store.db")
	id, other := w.thread(), uuid.NewString()
	w.run(id, object{"assistant_id": "steps", "input": object{}, "after_seconds": 3600})
	require.Equal(t, 200, w.ask("POST", "/assistants", object{"graph_id": "greet", "assistant_id": other}, nil))
	misfits := "the body does not fit: "
	for _, c := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"POST", "/threads", `[]`, 422, misfits + "it is no object"},
		{"POST", "/threads", `{"metadata": 7}`, 422, misfits + "metadata is no object"},
		{"POST", "/threads", `{"thread_id": 7}`, 422, misfits + "thread_id is no string"},
		{"POST", "/runs", `{"assistant_id": "steps", "stream_mode": 7}`, 422, misfits + "stream_mode is no string and no list of strings"},
		{"POST", "/runs", `{"assistant_id": "steps", "interrupt_before": 7}`, 422, misfits + `interrupt_before is no "*" and no list of nodes`},
		{"POST", "/runs", `{"assistant_id": "steps", "config": {"recursion_limit": "x"}}`, 422, misfits + "config.recursion_limit is no whole number"},
		{"POST", "/runs", `{"assistant_id": "steps", "stream_resumable": 7}`, 422, misfits + "stream_resumable is no boolean"},
		{"POST", "/threads/" + id + "/history", `{"before": 7}`, 422, misfits + "before is no checkpoint and no id of one"},
		{"POST", "/threads", `{"thread_id": "` + id + `"}`, 409, "the thread exists already"},
		{"POST", "/threads", `{"thread_id": "` + strings.ToUpper(id) + `"}`, 409, "the thread exists already"},
		{"POST", "/assistants", `{"graph_id": "greet", "assistant_id": "` + other + `"}`, 409, "the assistant exists already"},
		{"POST", "/threads/" + id + "/runs", `{"assistant_id": "steps", "input": {}, "multitask_strategy": "reject"}`, 409,
			"a run of the thread is under way, and multitask_strategy is reject"},
		{"PUT", "/store/items", `{"namespace": ["a"], "key": "k", "value": null}`, 422, "value is null: it is needed"},
		{"PUT", "/store/items", `{"namespace": ["a"], "key": "k"}`, 422, "value is missing"},
		{"GET", "/runs/crons/" + other, ``, 404, "there is no such cron"},
		{"DELETE", "/runs/crons/" + other, ``, 404, "there is no such cron"},
		{"GET", "/threads/" + id + "/runs?status=bad", ``, 422, `status "bad" is none of pending, running, success, error, interrupted, timeout`},
	} {
		status, detail := w.said(c.method, c.path, c.body)
		require.Equal(t, c.status, status, "%s %s: %s", c.method, c.path, detail)
		require.Equal(t, c.detail, detail, "%s %s", c.method, c.path)
	}
	resp, err := http.DefaultClient.Do(w.request("POST", "/threads/"+id+"/commands", strings.NewReader(`{"id": "x", "method": "run.start"}`)))
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	var answered struct {
		ID      json.RawMessage `json:"id"`
		Message string          `json:"message"`
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answered))
	require.Equal(t, "null", string(answered.ID))
	require.Equal(t, misfits+"id is no whole number", answered.Message)
}

// An id is the same in whatever letters it is written.
func TestLettersOfIDs(t *testing.T) {
	w := newWorld(t)
	var made struct {
		ID string `json:"thread_id"`
	}
	id := uuid.NewString()
	upper := strings.ToUpper(id)
	require.Equal(t, 200, w.ask("POST", "/threads", object{"thread_id": upper}, &made))
	require.Equal(t, id, made.ID)
	run := w.run(upper, object{"assistant_id": "steps", "input": object{}, "after_seconds": 3600})
	for _, path := range []string{"", "/state", "/runs", "/runs/" + strings.ToUpper(run)} {
		require.Equal(t, 200, w.ask("GET", "/threads/"+upper+path, nil, nil), path)
	}
	var found []object
	require.Equal(t, 200, w.ask("POST", "/threads/search", object{"ids": []string{upper}}, &found))
	require.Len(t, found, 1)
	require.Equal(t, 204, w.ask("POST", "/runs/cancel", object{"thread_id": upper, "run_ids": []string{strings.ToUpper(run)}}, nil))
	require.Equal(t, []string{"interrupted"}, w.statuses(id))
	var pruned struct {
		Count int `json:"pruned_count"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads/prune", object{"thread_ids": []string{upper}}, &pruned))
	require.Equal(t, 1, pruned.Count)
	require.Equal(t, 404, w.ask("GET", "/threads/"+id, nil, nil))
}
