package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
)

// An item is of whose name its namespace begins with: others neither read, write, delete nor find it, by no path and no prefix, and an
// operator does. A server that was killed changes nothing in that.
func TestItemsHaveOwners(t *testing.T) {
	t.Setenv("SUPERSTEP_STORE", filepath.Join(t.TempDir(), "store.db"))
	w, _, _, bob, operator := keyed(t)
	item := func(key string, namespace ...string) object {
		return object{"namespace": namespace, "key": key, "value": object{"of": namespace[0]}}
	}
	require.Equal(t, 204, w.ask("PUT", "/store/items", item("k", "ann", "notes"), nil))
	require.Equal(t, 204, w.as(bob).ask("PUT", "/store/items", item("k", "bob", "notes"), nil))

	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"PUT", "/store/items", item("k", "ann", "notes")},
		{"PUT", "/store/items", item("k", "anna")},
		{"PUT", "/store/items", item("k", "notes", "bob")},
		{"GET", "/store/items?namespace=ann.notes&key=k", nil},
		{"GET", "/store/items?namespace=notes.bob&key=k", nil},
		{"DELETE", "/store/items", object{"namespace": []string{"ann", "notes"}, "key": "k"}},
		{"POST", "/store/items/search", object{"namespace_prefix": []string{"ann"}}},
		{"POST", "/store/items/search", object{"namespace_prefix": []string{}}},
		{"POST", "/store/items/search", object{}},
		{"POST", "/store/items/search", object{"filter": object{"of": "ann"}}},
		{"POST", "/store/namespaces", object{"prefix": []string{"ann"}}},
		{"POST", "/store/namespaces", object{"suffix": []string{"notes"}}},
		{"POST", "/store/namespaces", object{}},
	} {
		require.Equal(t, http.StatusForbidden, w.as(bob).ask(c.method, c.path, c.body, nil), "%s %s %v", c.method, c.path, c.body)
		require.Equal(t, http.StatusUnauthorized, w.as("").ask(c.method, c.path, c.body, nil), "%s %s %v", c.method, c.path, c.body)
	}

	require.NoError(t, w.serve.Kill())
	w.startServe()
	found := func(w *world, search object) (of []any) {
		var found items
		require.Equal(t, 200, w.ask("POST", "/store/items/search", search, &found))
		for _, i := range found.Items {
			of = append(of, i.Value["of"])
		}
		return of
	}
	require.Equal(t, []any{"ann"}, found(w, object{"namespace_prefix": []string{"ann"}}))
	require.Equal(t, []any{"bob"}, found(w.as(bob), object{"namespace_prefix": []string{"bob"}}))
	require.ElementsMatch(t, []any{"ann", "bob"}, found(w.as(operator), object{}))
}

// Somebody who opens a stream and does not read it slows neither who reads the same run nor other runs. What it did not read it gets later,
// each event once: from the same connection, or behind the last event where the server has given the connection up.
func TestASlowReaderSlowsNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	const words, batch = 600, 100
	w := newWorldAt(t, testserver.Start(t, testserver.Options{Live: true}).Address())
	s := newSpeaker(w)
	word := strings.Repeat("w", 70) + " "
	s.says(word)
	thread := w.thread()
	run := w.run(thread, object{"assistant_id": "tells", "input": s.input(words), "stream_resumable": true, "stream_mode": []string{"custom", "messages", "updates"}})
	read := versions["first"]
	narrow := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			err = tcp.SetReadBuffer(64 << 10)
		}
		return conn, err
	}}}
	req := w.request("GET", "/threads/"+thread+"/runs/"+run+"/stream", nil)
	req.Header.Set("Last-Event-ID", "-1")
	slow, err := narrow.Do(req)
	require.NoError(t, err)
	defer slow.Body.Close()
	require.Equal(t, 200, slow.StatusCode)

	quick := read.listen(w, thread, run, nil)
	for n := batch; n <= words; n += batch {
		begun := time.Now()
		s.upto(n)
		read.has(quick, wordsOf(word, 1, n)...)
		require.Less(t, time.Since(begun), 2*time.Minute, "words up to %d", n)
		require.Equal(t, 200, w.ask("POST", "/threads/"+w.thread()+"/runs/wait", object{"assistant_id": "steps", "input": object{}}, nil))
		t.Logf("%d words, and another run, in %v", n, time.Since(begun))
	}
	s.upto(words + 1)
	quick.until("the end of the run", func(all []sent) bool { return read.over(all[len(all)-1]) })

	var late []sent
	size := 0
	_ = scanEvents(slow.Body, func(e sent) bool { // it may be cut off
		late, size = append(late, e), size+len(e.Data)
		return !read.over(e)
	})
	require.NotEmpty(t, late)
	if !read.over(late[len(late)-1]) {
		rest := read.listen(w, thread, run, late)
		rest.until("the end of the run", func(all []sent) bool { return len(all) > 0 && read.over(all[len(all)-1]) })
		late = append(late, rest.all...)
	}
	require.Equal(t, ids(quick.all), ids(late))
	require.Equal(t, wordsOf(word, 1, words), read.words(late))
	raw, err := json.Marshal(late)
	require.NoError(t, err)
	require.Greater(t, len(raw), 10<<20, "more than the buffers of a connection hold")
	t.Logf("%d MB, of which %d came by the connection that nobody read", len(raw)>>20, size>>20)
}

// crowd is how many streams are open at once on one thread, and how many of them start a run of it.
func crowd() (streams, starts int) {
	if testing.Short() {
		return 60, 20
	}
	return 500, 100
}

// Many streams are opened on one thread at once: those who start a run each, those who read the run under way, and those who follow the
// thread. All open, each has every event of its run once and in order, and the runs come one after the other.
func TestACrowdOfStreams(t *testing.T) {
	const patience = 5 * time.Minute
	streams, starts := crowd()
	w := newWorldAt(t, testserver.Start(t, testserver.Options{Live: true}).Address())
	s := newSpeaker(w)
	thread := w.thread()
	body := object{"assistant_id": "tells", "input": s.input(3), "stream_mode": []string{"custom"}}
	first := w.run(thread, body)
	w.eventually("the first run is under way", func() bool { return slices.Equal([]string{"running"}, w.statuses(thread)) })
	text, err := json.Marshal(body)
	require.NoError(t, err)

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}, Timeout: 2 * patience}
	open, ends := make(chan error, streams), make(chan []string, streams)
	one := func(n int) (words []string, err error) {
		opens := sync.OnceFunc(func() { open <- err })
		defer opens()
		req := w.request("GET", "/threads/"+thread+"/runs/"+first+"/stream", nil)
		switch {
		case n < starts:
			req = w.request("POST", "/threads/"+thread+"/runs/stream", bytes.NewReader(text))
		case n%10 == 0:
			req = w.request("GET", "/threads/"+thread+"/stream", nil)
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("stream %d: %s", n, resp.Status)
		}
		opens()
		return words, scanEvents(resp.Body, func(e sent) bool {
			if e.Event == "error" {
				words = append(words, e.Data)
			}
			words = append(words, versions["first"].words([]sent{e})...)
			return len(words) < 3 || n < starts
		})
	}
	begun := time.Now()
	for n := range streams {
		go func() {
			words, err := one(n)
			if err != nil {
				words = append(words, err.Error())
			}
			ends <- words
		}()
	}
	late := time.After(patience)
	for n := range streams {
		select {
		case err := <-open:
			require.NoError(t, err)
		case <-late:
			require.FailNow(t, "not all streams open", "%d of %d in %v", n, streams, patience)
		}
	}
	t.Logf("%d streams open in %v", streams, time.Since(begun))
	s.upto(4)
	late = time.After(patience)
	for n := range streams {
		select {
		case words := <-ends:
			require.Equal(t, wordsOf("word ", 1, 3), words)
		case <-late:
			require.FailNow(t, "not all streams end", "%d of %d in %v", n, streams, patience)
		}
	}
	t.Logf("%d streams have ended %v after the first was opened", streams, time.Since(begun))
	var runs []struct {
		Status string `json:"status"`
	}
	require.Equal(t, 200, w.ask("GET", "/threads/"+thread+"/runs?limit=1000&status=success", nil, &runs))
	require.Len(t, runs, starts+1)
}
