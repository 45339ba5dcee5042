package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
)

// speaker steers the node of a graph "tells".
type speaker struct {
	*world
	dir string
}

func newSpeaker(w *world) speaker {
	s := speaker{w, w.TempDir()}
	s.says("word ")
	s.upto(0)
	return s
}

// says is what the node's words begin with from its next execution on.
func (s speaker) says(word string) { s.put("words", word) }

// upto allows so many words.
func (s speaker) upto(n int) { s.put("upto", strconv.Itoa(n)) }

func (s speaker) put(name, text string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(s, os.Rename(path+".new", path))
}

func (s speaker) input(count int) object { return object{"dir": s.dir, "count": count} }

// wordsOf are the words from one to another.
func wordsOf(word string, from, to int) (out []string) {
	for n := from; n <= to; n++ {
		out = append(out, fmt.Sprintf("%s%d ", word, n))
	}
	return out
}

// listening is a client's stream, read as it comes.
type listening struct {
	*testing.T
	all   []sent
	comes chan sent
	leave func()
}

func (w *world) listen(req *http.Request) *listening {
	w.Helper()
	resp, err := http.DefaultClient.Do(req.WithContext(w.Context()))
	require.NoError(w, err)
	require.Equal(w, 200, resp.StatusCode)
	l := &listening{T: w.T, comes: make(chan sent, 1000), leave: func() { _ = resp.Body.Close() }}
	w.Cleanup(l.leave)
	go func() {
		defer close(l.comes)
		_ = scanEvents(resp.Body, func(e sent) bool { l.comes <- e; return true }) // it may be cut off
	}()
	return l
}

// until reads until what was read is enough.
func (l *listening) until(what string, enough func([]sent) bool) {
	l.Helper()
	for late := time.After(3 * time.Minute); !enough(l.all); {
		select {
		case e, open := <-l.comes:
			if !open {
				require.FailNow(l, "the stream ended", "before %s: %v", what, l.all)
			}
			l.all = append(l.all, e)
		case <-late:
			require.FailNow(l, "nothing more came", "%s: %v", what, l.all)
		}
	}
}

// version is how one version of the protocol streams a run of "tells".
type version struct {
	// begin asks for a run; it returns the thread and the run.
	begin func(s speaker, count int) (thread, run string)
	// listen opens the stream behind the last event that a client has.
	listen func(w *world, thread, run string, after []sent) *listening
	// words are those that events carry.
	words func(all []sent) []string
	over  func(sent) bool
}

var versions = map[string]version{
	"first": {
		begin: func(s speaker, count int) (string, string) {
			thread := s.thread()
			return thread, s.run(thread, object{"assistant_id": "tells", "input": s.input(count), "stream_resumable": true,
				"stream_mode": []string{"custom", "messages-tuple", "updates", "values"}})
		},
		listen: func(w *world, thread, run string, after []sent) *listening {
			req, err := http.NewRequest(http.MethodGet, w.base+"/threads/"+thread+"/runs/"+run+"/stream", nil)
			require.NoError(w, err)
			req.Header.Set("Last-Event-ID", "-1")
			if len(after) > 0 {
				req.Header.Set("Last-Event-ID", after[len(after)-1].ID)
			}
			return w.listen(req)
		},
		words: func(all []sent) (out []string) {
			for _, e := range all {
				var word string
				if e.Event == "custom" && json.Unmarshal([]byte(e.Data), &word) == nil {
					out = append(out, word)
				}
			}
			return out
		},
		over: func(e sent) bool { return e.Event == "updates" && strings.Contains(e.Data, `"rest"`) },
	},
	"second": {
		begin: func(s speaker, count int) (string, string) {
			thread := uuid.NewString()
			s.command(thread, "run.start", object{"assistant_id": "tells", "input": s.input(count)})
			return thread, ""
		},
		listen: func(w *world, thread, _ string, after []sent) *listening {
			body := object{"channels": everything}
			if len(after) > 0 {
				since, err := strconv.ParseInt(after[len(after)-1].ID, 10, 64)
				require.NoError(w, err)
				body["since"] = since
			}
			text, err := json.Marshal(body)
			require.NoError(w, err)
			req, err := http.NewRequest(http.MethodPost, w.base+"/threads/"+thread+"/stream/events", bytes.NewReader(text))
			require.NoError(w, err)
			req.Header.Set("Content-Type", "application/json")
			return w.listen(req)
		},
		words: func(all []sent) (out []string) {
			for _, e := range all {
				var told struct {
					Params struct {
						Data struct {
							Payload string `json:"payload"`
						} `json:"data"`
					} `json:"params"`
				}
				if e.Event == "custom" && json.Unmarshal([]byte(e.Data), &told) == nil {
					out = append(out, told.Params.Data.Payload)
				}
			}
			return out
		},
		over: func(e sent) bool { return e.Event == "lifecycle" && strings.Contains(e.Data, `"completed"`) },
	},
}

// has waits until the words have come, and no others.
func (v version) has(l *listening, want ...string) {
	l.Helper()
	l.until(fmt.Sprint(len(want), " words"), func(all []sent) bool { return len(v.words(all)) >= len(want) })
	require.Equal(l, want, v.words(l.all))
}

// ends reads to the end of the run, and wants these words, in order, each once. Who reads it all again has the same.
func (v version) ends(w *world, l *listening, thread, run string, before []sent, want ...string) {
	w.Helper()
	l.until("the end of the run", func(all []sent) bool { return len(all) > 0 && v.over(all[len(all)-1]) })
	all := append(before, l.all...)
	require.Equal(w, want, v.words(all))
	again := v.listen(w, thread, run, nil)
	again.until("the end of the run", func(all []sent) bool { return len(all) > 0 && v.over(all[len(all)-1]) })
	require.Equal(w, ids(again.all), ids(all))
	require.Equal(w, want, v.words(again.all))
}

func ids(all []sent) (out []string) {
	for _, e := range all {
		out = append(out, e.ID+" "+e.Event)
	}
	return out
}

// With nothing but a devserver of this machine worker and server find each other: words come while the node says them. A client goes
// on behind its last event at another server, when the worker was lost, and when all are gone at once, the devserver too: each word
// once, in order, as whoever reads the run later has it.
func TestWordsComeWhileTheyAreSaid(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	server := testserver.Start(t, testserver.Options{Live: true})
	for name, v := range versions {
		t.Run(name, func(t *testing.T) {
			w := newWorldAt(t, server.Address())
			s := newSpeaker(w)
			s.upto(3)
			thread, run := v.begin(s, 20)
			l := v.listen(w, thread, run, nil)
			v.has(l, wordsOf("word ", 1, 3)...)
			before := l.all

			s.upto(5) // said while nobody listens
			require.NoError(t, w.serve.Kill())
			w.startServe()
			l = v.listen(w, thread, run, before)
			v.has(l, wordsOf("word ", 4, 5)...)
			before = append(before, l.all...)
			l.leave()
			s.upto(7)
			l = v.listen(w, thread, run, before)
			v.has(l, wordsOf("word ", 6, 7)...)

			require.NoError(t, w.worker.Kill()) // another one says them all again
			w.startWorker()
			s.upto(9)
			v.has(l, wordsOf("word ", 6, 9)...)
			before = append(before, l.all...)

			require.NoError(t, w.serve.Kill())
			require.NoError(t, w.worker.Kill())
			require.NoError(t, server.Kill())
			require.NoError(t, server.Restart())
			w.startWorker()
			w.startServe()
			l = v.listen(w, thread, run, before)
			s.upto(11)
			v.has(l, wordsOf("word ", 10, 11)...)
			s.upto(21)
			v.ends(w, l, thread, run, before, wordsOf("word ", 1, 20)...)
		})
	}
}

// typed is a command that somebody has typed, whose output is read as it comes.
type typed struct {
	*world
	out bytes.Buffer
	mu  sync.Mutex
}

func (c *typed) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

func (c *typed) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// types starts a command; its exit code comes when it has ended.
func (w *world) types(args ...string) (c *typed, exit <-chan int) {
	c, codes := &typed{world: w}, make(chan int, 1)
	program, err := os.Executable()
	require.NoError(w, err)
	command := processes.Command{Name: args[0], Path: program, Dir: w.dir, Env: append(os.Environ(), envProgram+"=1"), Output: c,
		Args: slices.Concat(args, []string{"--address", w.address, "--task-queue", w.queue}, w.flags)}
	go func() {
		code, err := w.set.Run(w.Context(), command)
		assert.NoError(w, err)
		codes <- code
	}()
	return c, codes
}

// shows waits until the output has these texts, each once.
func (c *typed) shows(texts ...string) {
	c.Helper()
	for _, text := range texts {
		c.eventually(text, func() bool { return strings.Contains(c.text(), text) })
		require.Equal(c, 1, strings.Count(c.text(), text), "%s: %s", text, c.text())
	}
}

// Commands show words while the node says them, with nothing but a devserver of this machine, and once: "stream" as parts, "run --follow" as lines
// of the step. The worker is killed in the middle.
func TestCommandsShowWordsWhileTheyAreSaid(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	w := newWorldAt(t, testserver.Start(t, testserver.Options{Live: true}).Address())
	s := newSpeaker(w)
	input, err := json.Marshal(s.input(6))
	require.NoError(t, err)
	s.upto(2)
	followed, followedTo := w.types("run", "tells", "--thread", "t-1", "--input", string(input), "--follow")
	lines := func(n int) []string { // as a message, and as a value
		line := fmt.Sprintf("step 1  say            …          word %d", n)
		return []string{line + " \n", line + "\n"}
	}
	followed.shows(slices.Concat(lines(1), lines(2))...)
	streamed, streamedTo := w.types("stream", "t-1", "--mode", "custom", "--mode", "updates")
	parts := func(n int) []string { return []string{fmt.Sprintf(`custom      "word %d "`, n)} }
	streamed.shows(slices.Concat(parts(1), parts(2))...)
	s.upto(3)
	followed.shows(lines(3)...)
	streamed.shows(parts(3)...)
	require.NoError(t, w.worker.Kill())
	w.startWorker()
	s.upto(4)
	followed.shows(lines(4)...)
	streamed.shows(parts(4)...)
	s.upto(7)
	require.Zero(t, <-followedTo)
	require.Zero(t, <-streamedTo)
	for n := 1; n <= 6; n++ {
		require.Equal(t, 1, strings.Count(streamed.text(), parts(n)[0]), "%s", streamed.text())
		require.Equal(t, 2, strings.Count(followed.text(), fmt.Sprintf("  word %d", n)), "%s", followed.text())
	}
	require.Contains(t, followed.text(), "finished")
}

// A node that says something else after its worker was lost: what was said is void, and what counts comes once, behind it. Who
// goes on behind the node, or reads later, has what counts.
func TestWordsThatAreSaidDifferently(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	nats := testserver.StartNATS(t)
	for name, v := range versions {
		t.Run(name, func(t *testing.T) {
			w := newWorldAt(t, testserver.Address(t), "--live", nats.URL)
			s := newSpeaker(w)
			s.upto(6)
			thread, run := v.begin(s, 8)
			l := v.listen(w, thread, run, nil)
			v.has(l, wordsOf("word ", 1, 6)...)
			s.says("other ")
			require.NoError(t, w.worker.Kill())
			w.startWorker()
			v.has(l, append(wordsOf("word ", 1, 6), wordsOf("other ", 1, 6)...)...)
			s.upto(9)
			l.until("the node's update", func(all []sent) bool { return all[len(all)-1].Event == "updates" })
			require.Equal(t, append(wordsOf("word ", 1, 6), wordsOf("other ", 1, 8)...), v.words(l.all))
			before := l.all
			l.leave()
			l = v.listen(w, thread, run, before)
			l.until("the end of the run", func(all []sent) bool { return len(all) > 0 && v.over(all[len(all)-1]) })
			require.Empty(t, v.words(l.all))
			require.Contains(t, l.all[0].Data+l.all[len(l.all)-1].Data+fmt.Sprint(l.all), "other 8")
			again := v.listen(w, thread, run, nil)
			again.until("the end of the run", func(all []sent) bool { return len(all) > 0 && v.over(all[len(all)-1]) })
			require.Equal(t, wordsOf("other ", 1, 8), v.words(again.all))
			require.Equal(t, ids(again.all[len(again.all)-len(l.all):]), ids(l.all))
		})
	}
}

// The NATS server is killed in the middle, and is there again: words come live again, of a node that runs on. It is killed for good: the
// words come with the result. Neither fails nor delays the run, and the worker says each once.
func TestWordsWithoutTheServerThatCarriesThem(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	for name, v := range versions {
		t.Run(name, func(t *testing.T) {
			nats := testserver.StartNATS(t)
			w := newWorldAt(t, testserver.Address(t), "--live", nats.URL+"?storage=memory")
			s := newSpeaker(w)
			s.upto(2)
			thread, run := v.begin(s, 8)
			l := v.listen(w, thread, run, nil)
			v.has(l, wordsOf("word ", 1, 2)...)
			require.NoError(t, nats.Kill())
			s.upto(4)
			require.NoError(t, nats.Restart())
			v.has(l, wordsOf("word ", 1, 4)...)
			before := l.all
			l.leave()
			l = v.listen(w, thread, run, before)
			s.upto(5)
			v.has(l, wordsOf("word ", 5, 5)...)
			require.NoError(t, nats.Kill())
			s.upto(9)
			v.ends(w, l, thread, run, before, wordsOf("word ", 1, 8)...)
			var said string
			w.eventually("the worker says that they are gone again", func() bool {
				said = w.set.Tail("worker", 1000)
				return strings.Count(said, "no live tokens") >= 2
			})
			require.Equal(t, 2, strings.Count(said, "no live tokens"), "%s", said)
			require.Equal(t, 1, strings.Count(said, "live tokens are there again"), "%s", said)
			require.NotContains(t, said, "comes with its result only")
		})
	}
}
