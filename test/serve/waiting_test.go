package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// posts sends a request that is given up when ctx ends.
func (w *world) posts(ctx context.Context, path string, body object) (*http.Response, error) {
	raw, err := json.Marshal(body)
	require.NoError(w, err)
	return http.DefaultClient.Do(w.request("POST", path, bytes.NewReader(raw)).WithContext(ctx))
}

// Who waits for a run is told that it is waited for while it runs, and cancels it by going, as early as that may be.
func TestWhoWaitsMayGo(t *testing.T) {
	w := newWorld(t)
	s := newSpeaker(w)
	id := w.thread()
	body := object{"assistant_id": "tells", "input": s.input(1), "on_disconnect": "cancel"}
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := w.posts(ctx, "/threads/"+id+"/runs/wait", body)
		gone <- err
	}()
	w.eventually("it runs", func() bool { all := w.statuses(id); return len(all) == 1 && all[0] == "running" })
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	w.eventually("its end", func() bool { return w.statuses(id)[0] == "interrupted" })

	begun := time.Now()
	resp, err := w.posts(t.Context(), "/threads/"+id+"/runs/wait", body)
	require.NoError(t, err)
	require.Less(t, time.Since(begun), 15*time.Second, "the status comes with the first newline")
	require.Equal(t, 200, resp.StatusCode)
	require.Contains(t, resp.Header.Get("Location"), "/join")
	s.upto(2)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, byte('\n'), text[0])
	require.True(t, json.Valid(text))
	require.Equal(t, "success", w.statuses(id)[0])
	s.upto(0)
	resp, err = w.posts(t.Context(), "/threads/"+id+"/runs/wait", body)
	require.NoError(t, err)
	other := id
	id = w.thread()
	require.Equal(t, 204, w.ask("DELETE", "/threads/"+other, nil, nil))
	text, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(text), `"__error__"`, "the status has gone")
	w.run(id, body)
	require.Equal(t, 409, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "tells", "input": object{}, "multitask_strategy": "reject"}, nil))
	s.upto(2)
	w.eventually("the last one ends", func() bool { return w.statuses(id)[0] == "success" })
}

// Who waits long for a run of its own is told what it has led to, and its thread is gone then.
func TestWhoWaitsLongIsToldAll(t *testing.T) {
	w := newWorld(t)
	s := newSpeaker(w)
	resp, err := w.posts(t.Context(), "/runs/wait", object{"assistant_id": "tells", "input": s.input(1)})
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	_, err = io.ReadFull(resp.Body, make([]byte, 5)) // longer than the record itself waits
	require.NoError(t, err)
	s.upto(2)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	var values object
	require.NoError(t, json.Unmarshal(text, &values))
	require.NotContains(t, values, "__error__")
	require.NotEmpty(t, values)
	thread, _, found := strings.Cut(resp.Header.Get("Location"), "/runs/")
	require.True(t, found)
	w.eventually("its thread is gone", func() bool { return w.ask("GET", thread, nil, nil) == 404 })
}

// A stream of a run that was put off begins at once, and its client may go.
func TestAStreamOfALaterRun(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
	defer leave()
	resp, err := w.posts(ctx, "/threads/"+id+"/runs/stream", object{"assistant_id": "steps", "input": object{}, "after_seconds": 3600, "on_disconnect": "cancel"})
	require.NoError(t, err)
	require.Equal(t, []string{"pending"}, w.statuses(id))
	require.NoError(t, resp.Body.Close())
	w.eventually("its end", func() bool { return w.statuses(id)[0] == "interrupted" })
}

// Of runs that are asked for at once none begins where one is refused.
func TestABatchThatIsRefused(t *testing.T) {
	w := newWorld(t)
	var before, after int
	require.Equal(t, 200, w.ask("POST", "/threads/count", object{}, &before))
	good := object{"assistant_id": "steps", "input": object{}, "on_completion": "keep"}
	for _, bad := range []object{
		{"assistant_id": "nope"},
		{"assistant_id": "steps", "multitask_strategy": "nope"},
		{"assistant_id": "steps", "input": object{}, "command": object{"goto": 7}},
		{"assistant_id": "steps", "command": object{"resume": "yes"}},
	} {
		var said struct {
			Detail string `json:"detail"`
		}
		status := w.ask("POST", "/runs/batch", []object{good, bad}, &said)
		require.GreaterOrEqual(t, status, 400, "%v", bad)
		require.Less(t, status, 500, "%v", bad)
		require.Contains(t, said.Detail, "run 1 of the list: ")
	}
	require.Equal(t, 200, w.ask("POST", "/threads/count", object{}, &after))
	require.Equal(t, before, after)
	var made []object
	require.Equal(t, 200, w.ask("POST", "/runs/batch", []object{good, good}, &made))
	require.Len(t, made, 2)
}
