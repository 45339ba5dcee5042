package main

import (
	"io"
	"net/http"
	"testing"

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
	all := []string{"metadata", "values", "updates", "values", "updates", "values", "updates", "values"}
	require.Equal(t, all, stream(at+"/stream"))
	require.Equal(t, all, stream(at+"/stream?cancel_on_disconnect=false&stream_mode=")) // as the SDK for Python asks for no mode
	require.Equal(t, []string{"updates", "updates", "updates"}, stream(at+"/stream?stream_mode=updates"))
}
