package main

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// joined is the answer to a request that joins a run, and where it says the run is.
func (w *world) joined(path string) (content, location string) {
	resp, err := http.DefaultClient.Do(w.request("GET", path, nil))
	require.NoError(w, err)
	defer func() { require.NoError(w, resp.Body.Close()) }()
	require.Equal(w, 200, resp.StatusCode)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(w, err)
	return resp.Header.Get("Content-Location"), resp.Header.Get("Location")
}

// Who joins a run is told where it is, as who began it was. A stream that is narrowed to modes has events of those alone.
func TestJoiningTellsWhereTheRunIs(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	at := "/threads/" + id + "/runs/" + w.run(id, object{"assistant_id": "steps", "input": object{"note": "x"}, "stream_mode": []string{"updates", "values"},
		"stream_resumable": true})
	content, location := w.joined(at + "/join")
	require.Equal(t, []string{at, at + "/join"}, []string{content, location})

	stream := func(path string) []string {
		req := w.request("GET", path, nil)
		req.Header.Set("Last-Event-ID", "-1")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { require.NoError(t, resp.Body.Close()) }()
		require.Equal(t, []string{at, at + "/stream"}, []string{resp.Header.Get("Content-Location"), resp.Header.Get("Location")})
		var names []string
		for _, e := range events(t, resp.Body, func(sent) bool { return false }) {
			names = append(names, e.Event)
		}
		return names
	}
	require.Equal(t, []string{"metadata", "values", "updates", "values", "updates", "values", "updates", "values"}, stream(at+"/stream"))
	require.Equal(t, []string{"updates", "updates", "updates"}, stream(at+"/stream?stream_mode=updates"))
}

// Threads of a list are deleted; what is not there is passed over, and what is no id deletes none.
func TestPrune(t *testing.T) {
	w := newWorld(t)
	kept, gone := w.thread(), w.thread()
	w.run(gone, object{"assistant_id": "steps", "input": object{"note": "x"}})
	w.eventually("its end", func() bool { return w.statuses(gone)[0] == "success" })
	require.Equal(t, 422, w.ask("POST", "/threads/prune", object{"thread_ids": []string{gone, "x"}}, nil))
	require.Equal(t, 422, w.ask("POST", "/threads/prune", object{"thread_ids": []string{gone}, "strategy": "keep_latest"}, nil))
	require.Equal(t, 200, w.ask("GET", "/threads/"+gone, nil, nil))
	var out struct {
		Count int `json:"pruned_count"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads/prune", object{"thread_ids": []string{gone, uuid.NewString()}, "strategy": "delete"}, &out))
	require.Equal(t, 1, out.Count)
	require.Equal(t, 404, w.ask("GET", "/threads/"+gone, nil, nil))
	require.Equal(t, 200, w.ask("GET", "/threads/"+kept, nil, nil))
}
