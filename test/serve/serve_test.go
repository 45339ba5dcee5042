package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"superstep.dev/cli"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
)

// envProgram makes the tests' binary the program itself.
const envProgram = "SUPERSTEP_TEST_SERVE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		cli.Main(append(graphs(), tells(), pay(), shop("shop", false), shop("final", true), maybe())...) // ends the process
	}
	os.Exit(m.Run())
}

// world is a worker and a server, processes of their own.
type world struct {
	*testing.T
	set           *processes.Set
	dir           string
	worker, serve *processes.Process
	base, queue   string
	address       string
	flags         []string // of both
	// key is what requests carry as X-Api-Key, and token as a bearer token; "" for nothing.
	key, token string
	// at is where servers listen, and access are further flags of them.
	at     string
	access []string
}

func newWorld(t *testing.T, access ...string) *world {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	return (&world{T: t, address: testserver.Address(t), access: access}).begin()
}

// newWorldAt is a world at a server of Temporal, with flags for worker and server.
func newWorldAt(t *testing.T, address string, flags ...string) *world {
	return (&world{T: t, address: address, flags: flags}).begin()
}

func (w *world) begin() *world {
	t := w.T
	set, _, err := processes.New(context.Background(), filepath.Join(t.TempDir(), "logs"))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, set.Stop())
		if t.Failed() {
			t.Logf("the end of what the server wrote:\n%s", set.Tail("serve", 30))
		}
	})
	w.set, w.dir, w.queue, w.at = set, t.TempDir(), testserver.Queue(t), "127.0.0.1:0"
	w.startWorker()
	w.startServe()
	return w
}

func (w *world) start(name string, c processes.Command, args ...string) *processes.Process {
	program, err := os.Executable()
	require.NoError(w, err)
	c.Name, c.Path, c.Dir, c.Env = name, program, w.dir, append(os.Environ(), envProgram+"=1")
	c.Args = slices.Concat([]string{name, "--address", w.address, "--task-queue", w.queue}, w.flags, args)
	p, err := w.set.Start(w.Context(), c)
	require.NoError(w, err)
	return p
}

func (w *world) startWorker() {
	ready := filepath.Join(w.dir, "worker.ready")
	w.worker = w.start("worker", processes.Command{ReadyFile: ready}, "--ready-file", ready)
}

// startServe starts another server, at an address of its own.
func (w *world) startServe() {
	w.serve = w.start("serve", processes.Command{ReadyLine: regexp.MustCompile(`serving  (http://\S+)`)}, append([]string{"--listen", w.at}, w.access...)...)
	w.base = w.serve.Said()[1]
}

// ask makes a request and decodes the answer; it returns the status.
func (w *world) ask(method, path string, body, into any) int {
	w.Helper()
	raw, err := json.Marshal(body)
	require.NoError(w, err)
	resp, err := http.DefaultClient.Do(w.request(method, path, bytes.NewReader(raw)))
	require.NoError(w, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(w, err)
	if into != nil {
		require.NoError(w, json.Unmarshal(text, into), "%s", text)
	}
	return resp.StatusCode
}

// request is a request in the name of whose key or token the world has.
func (w *world) request(method, path string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(w.Context(), method, w.base+path, body)
	require.NoError(w, err)
	if w.key != "" {
		req.Header.Set("X-Api-Key", w.key)
	}
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	return req
}

type object = map[string]any

func (w *world) thread() string {
	var made struct {
		ID string `json:"thread_id"`
	}
	require.Equal(w, 200, w.ask("POST", "/threads", object{}, &made))
	return made.ID
}

func (w *world) run(thread string, body object) string {
	var made struct {
		ID string `json:"run_id"`
	}
	require.Equal(w, 200, w.ask("POST", "/threads/"+thread+"/runs", body, &made))
	return made.ID
}

// log is the field of that name of a thread's state.
func (w *world) log(thread string) []string {
	var state struct {
		Values struct {
			Log []string `json:"log"`
		} `json:"values"`
	}
	require.Equal(w, 200, w.ask("GET", "/threads/"+thread+"/state", nil, &state))
	return state.Values.Log
}

func (w *world) eventually(what string, f func() bool) {
	w.Helper()
	require.Eventually(w, f, 3*time.Minute, 50*time.Millisecond, what)
}

func (w *world) statuses(thread string) []string {
	var runs []struct {
		Status string `json:"status"`
	}
	require.Equal(w, 200, w.ask("GET", "/threads/"+thread+"/runs", nil, &runs))
	var out []string
	for _, r := range runs {
		out = append(out, r.Status)
	}
	return out
}

// A run under way, one that waits its turn, and their thread outlive the server and the worker: both are done once, in order.
func TestKilledServersLoseNothing(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	slow := func(steps int) object {
		return object{"assistant_id": "slow", "input": object{"steps": steps, "delay_ms": 150}, "durability": "sync"}
	}
	const first, both = 40, 44 // the first takes six seconds at least: it is under way when the processes are killed
	w.run(id, slow(first))
	w.run(id, slow(both))
	w.eventually("the first tick", func() bool { return len(w.log(id)) > 0 })
	require.Equal(t, []string{"pending", "running"}, w.statuses(id))
	require.NoError(t, w.serve.Kill())
	w.startServe()
	require.NoError(t, w.worker.Kill())
	w.startWorker()
	w.eventually("both ends", func() bool { return slices.Equal([]string{"success", "success"}, w.statuses(id)) })
	var ticks []string
	for n := range both {
		ticks = append(ticks, fmt.Sprint("tick ", n+1))
	}
	require.Equal(t, ticks, w.log(id))
}

// sent is a server-sent event.
type sent struct{ Event, Data, ID string }

// events reads the events of a stream until enough says so, or the end.
func events(t *testing.T, r io.Reader, enough func(sent) bool) []sent {
	var out []sent
	require.NoError(t, scanEvents(r, func(e sent) bool {
		out = append(out, e)
		return !enough(e)
	}))
	return out
}

// scanEvents hands out the events of a stream until on wants no more, or the end.
func scanEvents(r io.Reader, on func(sent) bool) error {
	var e sent
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			e.Event = value
		case "data":
			e.Data = value
		case "id":
			e.ID = value
		case "":
			if e.Event == "" {
				continue // behind a comment
			}
			if !on(e) {
				return nil
			}
			e = sent{}
		}
	}
	return lines.Err()
}

// A client whose server is killed goes on at another one behind the last event that it has: each event once, in order.
func TestStreamsGoOnAtAnotherServer(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	run := w.run(id, object{"assistant_id": "slow", "input": object{"steps": 8, "delay_ms": 150}, "durability": "sync",
		"stream_mode": []string{"updates", "values"}, "stream_resumable": true})
	query := ""
	join := func(after string, enough func(sent) bool) []sent {
		req, err := http.NewRequestWithContext(t.Context(), "GET", w.base+"/threads/"+id+"/runs/"+run+"/stream"+query, nil)
		require.NoError(t, err)
		req.Header.Set("Last-Event-ID", after)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
		return events(t, resp.Body, enough)
	}
	first := join("-1", func(e sent) bool { return e.Event == "updates" })
	require.NoError(t, w.serve.Kill())
	w.startServe()
	all := func(sent) bool { return false }
	rest := join(first[len(first)-1].ID, all)
	require.Equal(t, join("-1", all), append(first, rest...))
	require.Len(t, rest, 8+7) // values of 8 ticks, and the updates of all but the first
	require.Equal(t, 422, w.ask("GET", "/threads/"+id+"/runs/"+run+"/stream?stream_mode=updates,nope", nil, nil))
	for _, modes := range []string{"stream_mode=updates", "stream_mode=updates,messages", "stream_mode=messages&stream_mode=updates", "stream_mode=" + url.QueryEscape(`["updates"]`)} {
		query = "?" + modes
		for _, e := range join("-1", all)[1:] {
			require.Equal(t, "updates", e.Event, modes)
		}
	}
}

// A run that is to be cancelled when its client goes is not when the server goes, as in a deploy: the client joins it at another one.
func TestAServerThatIsStoppedCancelsNothing(t *testing.T) {
	w := newWorld(t)
	s := newSpeaker(w)
	id := w.thread()
	stream := func() *http.Response { // of a run that does not end before it may
		raw, err := json.Marshal(object{"assistant_id": "tells", "input": s.input(1), "stream_mode": "updates", "on_disconnect": "cancel"})
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(w.request("POST", "/threads/"+id+"/runs/stream", bytes.NewReader(raw)))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		return resp
	}
	resp := stream()
	w.eventually("it runs", func() bool { return slices.Equal([]string{"running"}, w.statuses(id)) })
	require.NoError(t, w.serve.Stop())
	_, err := io.Copy(io.Discard, resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoError(t, resp.Body.Close())
	w.startServe()
	require.Equal(t, []string{"running"}, w.statuses(id))
	s.upto(2)
	w.eventually("the end", func() bool { return w.statuses(id)[0] != "running" })
	require.Equal(t, []string{"success"}, w.statuses(id))
	// A client that goes does cancel it.
	s.upto(0)
	resp = stream()
	w.eventually("the next run", func() bool { return w.statuses(id)[0] == "running" })
	require.NoError(t, resp.Body.Close())
	w.eventually("its end", func() bool { return w.statuses(id)[0] == "interrupted" })
}

// What is no request of a client of this machine is refused, and nothing happens.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		method, path, host, body string
		status                   int
	}{
		{"GET", "/ok", "evil.example", "", 421},
		{"GET", "/ok", "localhost:2024", "", 200},
		{"POST", "/threads", "", "{nope", 422},
		{"POST", "/threads", "", `{"metadata": "` + strings.Repeat("x", 9<<20) + `"}`, 413},
		{"POST", "/threads", "", `{"metadata": 7}`, 422},
		{"GET", "/threads/a%2Fb", "", "", 404},
		{"PUT", "/threads/search", "", "{}", 405},
		{"GET", "/threads/" + strings.Repeat("0", 300), "", "", 422},
		{"POST", "/threads/search", "", strings.Repeat("[", 20000), 422},
		{"POST", "/threads/search", "", `{"limit": 0}`, 422},
		{"POST", "/threads/search", "", `{"select": ["nope"]}`, 422},
		{"POST", "/threads/search", "", `{"select": ["thread_id", "context"]}`, 200},
		{"POST", "/assistants/search", "", `{"select": ["nope"]}`, 422},
		{"POST", "/runs/crons/search", "", `{"select": ["nope"]}`, 422},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, w.base+c.path, strings.NewReader(c.body))
		require.NoError(t, err)
		req.Host = c.host
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.status, resp.StatusCode, "%s %s", c.method, c.path)
	}
	var found []any
	require.Equal(t, 200, w.ask("POST", "/threads/search", object{"metadata": object{"made": "here"}}, &found))
	require.Empty(t, found)
}

// Metadata and states are found right after they were written, also by a server that has just begun.
func TestThreadsAreFound(t *testing.T) {
	w := newWorld(t)
	mark := testserver.Queue(t)
	var made struct {
		ID string `json:"thread_id"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads", object{"metadata": object{"mark": mark}}, &made))
	search := func() (found []struct {
		ID     string `json:"thread_id"`
		Status string `json:"status"`
	}) {
		require.Equal(t, 200, w.ask("POST", "/threads/search", object{"metadata": object{"mark": mark}}, &found))
		return found
	}
	require.Equal(t, made.ID, search()[0].ID)
	var asked object
	require.Equal(t, 200, w.ask("POST", "/threads/"+made.ID+"/runs/wait", object{"assistant_id": "refund", "input": object{"order_id": "o-2"}}, &asked))
	require.Len(t, asked["__interrupt__"], 1)
	require.Equal(t, "interrupted", search()[0].Status)
	require.NoError(t, w.serve.Kill())
	w.startServe()
	w.eventually("the index has it", func() bool { found := search(); return len(found) == 1 && found[0].Status == "interrupted" })
	require.Equal(t, 204, w.ask("DELETE", "/threads/"+made.ID, nil, nil))
	require.Empty(t, search())
	require.Equal(t, 404, w.ask("GET", "/threads/"+made.ID, nil, nil))
	// The same id again is another thread.
	require.Equal(t, 200, w.ask("POST", "/threads", object{"thread_id": made.ID}, nil))
	require.Empty(t, w.log(made.ID))
}

// A command begins a run on a thread that nobody has made, and another one answers its question, once, also at another server.
// Commands that cannot be done are refused by their code, and nothing happens.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	id := uuid.NewString()
	type answered struct {
		Type   string  `json:"type"`
		ID     float64 `json:"id"`
		Error  string  `json:"error"`
		Result struct {
			Run string `json:"run_id"`
		} `json:"result"`
	}
	command := func(method string, params object) (a answered) {
		require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/commands", object{"id": 7, "method": method, "params": params}, &a))
		require.EqualValues(t, 7, a.ID)
		return a
	}
	respond := func(question string) answered {
		return command("input.respond", object{"namespace": []string{}, "interrupt_id": question, "response": true})
	}
	require.Equal(t, "no_such_interrupt", respond("q-none").Error)
	require.Equal(t, 404, w.ask("GET", "/threads/"+id, nil, nil))
	began := command("run.start", object{"assistant_id": "refund", "input": object{"order_id": "o-2"}})
	require.Equal(t, "success", began.Type)
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/runs/"+began.Result.Run+"/join", nil, nil))
	for _, refused := range []struct {
		method string
		params object
		code   string
	}{
		{"nope", object{}, "unknown_command"},
		{"run.start", object{}, "invalid_argument"},
		{"run.start", object{"assistant_id": 7}, "invalid_argument"},
		{"run.start", object{"assistant_id": "nope"}, "unknown_error"},
		{"run.start", object{"assistant_id": uuid.NewString()}, "unknown_error"},
		{"input.respond", object{"interrupt_id": "q-none", "response": true}, "no_such_interrupt"},
	} {
		got := command(refused.method, refused.params)
		require.Equal(t, []string{"error", refused.code}, []string{got.Type, got.Error}, refused.method)
	}
	var body answered
	require.Equal(t, 400, w.ask("POST", "/threads/"+id+"/commands", object{"method": "run.start"}, &body))
	require.Equal(t, "invalid_argument", body.Error)
	require.Equal(t, 400, w.ask("POST", "/threads/"+id+"/commands", object{"id": 8}, &body))
	require.EqualValues(t, 8, body.ID)
	require.Equal(t, []string{"success"}, w.statuses(id))

	require.NoError(t, w.serve.Kill())
	w.startServe()
	var state struct {
		Interrupts []struct {
			ID string `json:"id"`
		} `json:"interrupts"`
	}
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/state", nil, &state))
	require.Len(t, state.Interrupts, 1)
	require.Equal(t, "success", respond(state.Interrupts[0].ID).Type)
	w.eventually("the end", func() bool { return slices.Equal([]string{"success", "success"}, w.statuses(id)) })
	require.Equal(t, []string{"paid 250.00", "approved", "refunded rf-o-2", "customer told"}, w.log(id))
	require.Equal(t, "no_such_interrupt", respond(state.Interrupts[0].ID).Error)
}
