package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
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
		require.Less(t, time.Since(begun), 15*time.Second, "words up to %d", n)
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
