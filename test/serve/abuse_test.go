package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// spaces is a body of that many bytes, which is made while it is read.
type spaces struct{ left int64 }

func (s *spaces) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), s.left))
	for i := range p[:n] {
		p[i] = ' '
	}
	s.left -= int64(n)
	return n, nil
}

// memory is how much of the machine's memory the server has had at most, in bytes.
func (w *world) memory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.serve.PID()))
	if err != nil {
		w.Skipf("what a process has is not told here: %v", err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(w, m)
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(w, err)
	return n << 10
}

// Bodies of 100 MiB are refused without taking memory, whether they say how large they are or not, and others are served.
func TestHugeBodies(t *testing.T) {
	const size, most = 100 << 20, 128 << 20
	w := newWorld(t)
	id := w.thread()
	before := w.memory()
	for n := range 8 {
		body := &spaces{size}
		req := w.request("POST", "/threads/"+id+"/runs/wait", body)
		if n%2 == 0 {
			req.ContentLength = size
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil { // else the connection was closed while the body was under way
			require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
		}
		require.Greater(t, body.left, int64(size/2), "the rest is not taken")
	}
	require.Less(t, w.memory()-before, int64(most))
	w.thread()
}

// What is as deep as it may be comes through a run and all that shows it; what is deeper is refused.
func TestDeepValues(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	deep := func(n int) json.RawMessage { return json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	body := func(n int) object {
		return object{"assistant_id": "steps", "input": object{"note": "n"}, "metadata": object{"deep": deep(n)}}
	}
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", body(998), nil))
	require.Equal(t, 422, w.ask("POST", "/threads/"+id+"/runs/wait", body(999), nil))
	require.Equal(t, 200, w.ask("PATCH", "/threads/"+id, object{"metadata": object{"deep": deep(998)}}, nil))
	for _, path := range []string{"", "/state", "/runs", "/history?limit=5"} {
		require.Equal(t, 200, w.ask("GET", "/threads/"+id+path, nil, nil), path)
	}
	require.Equal(t, []string{"success"}, w.statuses(id))
	var found []object
	require.Equal(t, 200, w.ask("POST", "/threads/search", object{"ids": []string{id}, "metadata": object{"deep": deep(998)}}, &found))
	require.Len(t, found, 1)
}

// One client that opens 10,000 streams gets as many as it may have; the others are refused in words, everybody else is served meanwhile, and
// the client is again when it has closed some.
func TestAClientWithTenThousandStreams(t *testing.T) {
	const tries, most, atOnce = 10_000, 200, 64
	w, file, _, bob, _ := keyed(t)
	w.access = []string{"--client-keys", file, "--most-open", strconv.Itoa(most), "--rate", "-1"}
	require.NoError(t, w.serve.Kill())
	w.startServe()
	id := w.thread()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	var open []*http.Response
	var refused atomic.Int64
	var wrong atomic.Value
	var mu sync.Mutex
	var all sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for range tries {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			resp, err := client.Do(w.request("GET", "/threads/"+id+"/stream", nil))
			if err != nil {
				wrong.Store(err.Error())
				return
			}
			if resp.StatusCode == http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				open = append(open, resp)
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusTooManyRequests || !bytes.Contains(text, []byte("close some")) || resp.Header.Get("Retry-After") == "" {
				wrong.Store(fmt.Sprint(resp.Status, string(text), err))
			}
			refused.Add(1)
		})
	}
	all.Wait()
	require.Nil(t, wrong.Load())
	require.Len(t, open, most)
	require.EqualValues(t, tries-most, refused.Load())
	other := w.as(bob)
	theirs := other.thread()
	require.Equal(t, 200, other.ask("POST", "/threads/"+theirs+"/runs/wait", object{"assistant_id": "steps", "input": object{}}, nil))
	require.Equal(t, 429, w.ask("GET", "/threads/"+id, nil, nil))
	for _, resp := range open {
		require.NoError(t, resp.Body.Close())
	}
	w.eventually("the client is served again", func() bool { return w.ask("GET", "/threads/"+id, nil, nil) == 200 })
}
