package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/cli"
	"superstep.dev/internal/testserver"
)

// newKey makes a key for a client with the command that makes them.
func newKey(t *testing.T, file, name string, flags ...string) string {
	var out, wrong bytes.Buffer
	code := cli.Program{}.Run(t.Context(), append([]string{"serve", "keys", "new", name, "--client-keys", file}, flags...), nil, &out, &wrong)
	require.Zero(t, code, wrong.String())
	return strings.TrimSpace(out.String())
}

// keyed is a world whose server knows ann, bob and an operator by their keys.
func keyed(t *testing.T) (w *world, file, ann, bob, operator string) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	file = filepath.Join(t.TempDir(), "clients.keys")
	ann, bob, operator = newKey(t, file, "ann"), newKey(t, file, "bob"), newKey(t, file, "operator", "--admin")
	w = newWorld(t, "--client-keys", file)
	w.key = ann
	return w, file, ann, bob, operator
}

func (w *world) as(key string) *world {
	other := *w
	other.key = key
	return &other
}

// superstep runs a command of the command line, and returns what it writes.
func (w *world) superstep(args ...string) string {
	program, err := os.Executable()
	require.NoError(w, err)
	cmd := exec.CommandContext(w.Context(), program, append(args, "--address", testserver.Address(w.T), "--task-queue", w.queue)...)
	cmd.Env = append(os.Environ(), envProgram+"=1")
	out, err := cmd.Output()
	require.NoError(w, err, "%v", args)
	return string(out)
}

// anyBody is a body that fits every path.
func anyBody(thread, run string) object {
	return object{"assistant_id": "steps", "input": object{"note": "theirs"}, "schedule": "0 3 * * *", "version": 1, "channels": []string{"values"},
		"id": 1, "method": "run.start", "params": object{"assistant_id": "steps"}, "values": nil, "checkpoint": object{}, "metadata": object{"owner": "bob"},
		"if_not_exists": "create", "graph_id": "steps", "thread_id": thread, "run_ids": []string{run}, "run_id": run}
}

// What ann has made is not there for bob, at any path, whatever he sends; ann and an operator find it, also at another server. What bob
// tried has changed nothing.
func TestThreadsHaveOwners(t *testing.T) {
	w, _, _, bob, operator := keyed(t)
	assistant := w.assistant("POST", "", object{"graph_id": "steps", "name": "ann's"})
	thread := w.thread()
	var run struct {
		ID string `json:"run_id"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads/"+thread+"/runs", object{"assistant_id": assistant.ID, "input": object{"note": "mine"}}, &run))
	w.eventually("the run", func() bool { return slices.Equal([]string{"success"}, w.statuses(thread)) })
	cron := w.cron("POST", "/runs/crons", object{"assistant_id": "steps", "schedule": "0 3 * * *", "input": object{"note": "cron"}, "on_run_completed": "keep"})
	var state struct {
		Checkpoint struct {
			ID string `json:"checkpoint_id"`
		} `json:"checkpoint"`
	}
	require.Equal(t, 200, w.ask("GET", "/threads/"+thread+"/state", nil, &state))
	ids := map[string]string{"{thread_id}": thread, "{run_id}": run.ID, "{assistant_id}": assistant.ID, "{cron_id}": cron.ID, "{checkpoint_id}": state.Checkpoint.ID, "{namespace}": "child"}
	before := w.snapshot(thread, assistant.ID, cron.ID)

	var described struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	require.Equal(t, 200, w.as("").ask("GET", "/openapi.json", nil, &described), "the description is for everybody")
	for _, path := range slices.Sorted(maps.Keys(described.Paths)) {
		at := path
		for name, id := range ids {
			at = strings.ReplaceAll(at, name, id)
		}
		for method := range described.Paths[path] {
			method = strings.ToUpper(method)
			if slices.Contains([]string{"/ok", "/info", "/metrics", "/docs", "/openapi.json"}, path) {
				continue
			}
			require.Equal(t, 401, w.as("").ask(method, at, object{}, nil), "%s %s", method, path)
			require.Equal(t, 401, w.as(bob+"0").ask(method, at, object{}, nil), "%s %s", method, path)
			if at != path || path == "/runs/cancel" {
				w.refused(bob, method, path, at, thread, run.ID)
			}
		}
	}
	for _, list := range []string{"/threads", "/runs/crons"} {
		var found []any
		require.Equal(t, 200, w.as(bob).ask("POST", list+"/search", object{"ids": []string{thread}}, &found))
		require.Empty(t, found, list)
		var n int
		require.Equal(t, 200, w.as(bob).ask("POST", list+"/count", object{"metadata": object{"owner": "ann"}}, &n))
		require.Zero(t, n, list)
	}
	require.NotContains(t, w.as(bob).assistants(), assistant.ID)
	require.Equal(t, before, w.snapshot(thread, assistant.ID, cron.ID))

	require.NoError(t, w.serve.Kill())
	w.startServe()
	require.Equal(t, before, w.snapshot(thread, assistant.ID, cron.ID))
	require.Equal(t, before, w.as(operator).snapshot(thread, assistant.ID, cron.ID))
	// What a cron makes is its maker's.
	w.due(cron.ID)
	w.eventually("the cron's run", func() bool { return len(w.threadsOf(cron.ID)) == 1 })
	require.Empty(t, w.as(bob).threadsOf(cron.ID))
}

// refused holds that bob is refused at a path of somebody else's.
func (w *world) refused(bob, method, path, at, thread, run string) {
	w.Helper()
	raw, err := json.Marshal(anyBody(thread, run))
	require.NoError(w, err)
	resp, err := http.DefaultClient.Do(w.as(bob).request(method, at, bytes.NewReader(raw)))
	require.NoError(w, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(w, err)
	if strings.HasSuffix(path, "/commands") { // what is refused of a command is said in the answer
		require.Contains(w, string(text), `"type":"error"`)
		return
	}
	require.Equal(w, 404, resp.StatusCode, "%s %s: %s", method, path, text)
	require.NotContains(w, string(text), "ann")
}

// snapshot is how things are: nobody else may change them.
func (w *world) snapshot(thread, assistant, cron string) (all []object) {
	for _, path := range []string{"/threads/" + thread, "/threads/" + thread + "/state", "/assistants/" + assistant, "/runs/crons/" + cron} {
		var one object
		require.Equal(w, 200, w.ask("GET", path, nil, &one), path)
		all = append(all, one)
	}
	var runs []object
	require.Equal(w, 200, w.ask("GET", "/threads/"+thread+"/runs", nil, &runs))
	return append(all, runs...)
}

func (w *world) assistants() (ids []string) {
	var all []struct {
		ID string `json:"assistant_id"`
	}
	require.Equal(w, 200, w.ask("POST", "/assistants/search", object{"limit": 1000}, &all))
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	return ids
}

// Nobody makes something for somebody else, gives it away, or takes what is there under the same id; graphs' own assistants are everybody's
// to run, and changed by operators alone.
func TestOwnersStay(t *testing.T) {
	w, _, _, bob, operator := keyed(t)
	owner := func(w *world, method, path string, body object) any {
		var made struct {
			Metadata object `json:"metadata"`
		}
		require.Equal(t, 200, w.ask(method, path, body, &made))
		return made.Metadata["owner"]
	}
	id := uuid.NewString()
	require.Equal(t, "ann", owner(w, "POST", "/threads", object{"thread_id": id, "metadata": object{"owner": "bob", "mark": id}}))
	require.Equal(t, "ann", owner(w, "PATCH", "/threads/"+id, object{"metadata": object{"owner": "bob"}}))
	require.Equal(t, "ann", owner(w, "POST", "/threads", object{"thread_id": id, "if_exists": "do_nothing"}))
	require.Equal(t, 409, w.as(bob).ask("POST", "/threads", object{"thread_id": id, "if_exists": "do_nothing"}, nil))
	require.Equal(t, "ann", owner(w, "POST", "/threads/"+id+"/copy", object{}))
	require.Equal(t, "bob", owner(w.as(operator), "POST", "/threads", object{"metadata": object{"owner": "bob"}}))
	require.Equal(t, "operator", owner(w.as(operator), "POST", "/threads", object{}))
	require.Equal(t, "ann", owner(w.as(operator), "PATCH", "/threads/"+id, object{"metadata": object{"seen": true}}))
	var n int
	require.Equal(t, 200, w.ask("POST", "/threads/count", object{"metadata": object{"mark": id}}, &n))
	require.Equal(t, 2, n, "it and its copy")
	require.Equal(t, 200, w.as(bob).ask("POST", "/threads/count", object{"metadata": object{"mark": id}}, &n))
	require.Zero(t, n)

	own := w.assistants()[0]
	require.Equal(t, 403, w.ask("PATCH", "/assistants/"+own, object{"name": "mine"}, nil))
	require.Equal(t, 403, w.ask("DELETE", "/assistants/"+own, nil, nil))
	require.Equal(t, 200, w.as(operator).ask("PATCH", "/assistants/"+own, object{"context": object{}}, nil))
	require.Equal(t, 200, w.ask("GET", "/assistants/"+own, nil, nil))
	// Threads that runs make are their caller's.
	var run struct {
		Thread string `json:"thread_id"`
	}
	require.Equal(t, 200, w.ask("POST", "/runs", object{"assistant_id": "steps", "input": object{}, "on_completion": "keep"}, &run))
	require.Equal(t, 200, w.ask("GET", "/threads/"+run.Thread, nil, nil))
	require.Equal(t, 404, w.as(bob).ask("GET", "/threads/"+run.Thread, nil, nil))
	fresh := uuid.NewString()
	require.Equal(t, 200, w.ask("POST", "/threads/"+fresh+"/runs/wait", object{"assistant_id": "steps", "input": object{}, "if_not_exists": "create"}, nil))
	require.Equal(t, 404, w.as(bob).ask("GET", "/threads/"+fresh, nil, nil))
}

// An answer is kept as that of who gave it, as is a cancellation. An approval is answered by nobody here, whoever they are, at no path.
func TestAnswersAreOfWhoGivesThem(t *testing.T) {
	w, _, _, _, operator := keyed(t)
	id := w.thread()
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "refund", "input": object{"order_id": "o-2"}}, nil))
	require.Equal(t, 200, w.as(operator).ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "refund", "command": object{"resume": true}}, nil))
	require.Equal(t, []string{"paid 250.00", "approved", "refunded rf-o-2", "customer told"}, w.log(id))
	require.Contains(t, w.superstep("audit", id, "-o", "json"), `"claimed": "operator"`) // proven to the server, claimed to the worker

	slow := w.thread()
	run := w.run(slow, object{"assistant_id": "slow", "input": object{"steps": 3000, "delay_ms": 200}})
	w.eventually("a tick", func() bool { return len(w.log(slow)) > 0 })
	require.Equal(t, 202, w.ask("POST", "/threads/"+slow+"/runs/"+run+"/cancel", nil, nil))
	w.eventually("the end", func() bool { return slices.Equal([]string{"interrupted"}, w.statuses(slow)) })
	require.Contains(t, w.superstep("audit", slow, "-o", "json"), `"claimed": "ann"`)

	paid := w.thread()
	require.Equal(t, 200, w.ask("POST", "/threads/"+paid+"/runs/wait", object{"assistant_id": "pay", "input": object{"amount": 9900}}, nil))
	var state struct {
		Interrupts []struct {
			ID string `json:"id"`
		} `json:"interrupts"`
		Values object `json:"values"`
	}
	asks := func() string {
		require.Equal(t, 200, w.ask("GET", "/threads/"+paid+"/state", nil, &state))
		require.Len(t, state.Interrupts, 1)
		require.NotContains(t, state.Values, "paid")
		return state.Interrupts[0].ID
	}
	question := asks()
	for _, who := range []*world{w, w.as(operator)} {
		for _, answer := range []any{true, "approve", object{question: true}, object{"verdict": "approve"}, object{question: object{"verdict": "approve"}}} {
			body := object{"assistant_id": "pay", "command": object{"resume": answer}}
			require.Equal(t, 403, who.ask("POST", "/threads/"+paid+"/runs", body, nil))
			require.Equal(t, 403, who.ask("POST", "/threads/"+paid+"/runs/stream", body, nil))
		}
		var said object
		require.Equal(t, 200, who.ask("POST", "/threads/"+paid+"/commands", object{"id": 1, "method": "input.respond",
			"params": object{"interrupt_id": question, "response": object{"verdict": "approve"}}}, &said))
		require.Equal(t, "error", said["type"])
	}
	require.Equal(t, question, asks())
}

// issuer issues tokens, and publishes its key.
type issuer struct {
	*httptest.Server
	key ed25519.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	i := &issuer{key: private}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var reply any = map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}
		if r.URL.Path == "/keys" {
			reply = map[string]any{"keys": []map[string]string{{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": base64.RawURLEncoding.EncodeToString(public)}}}
		}
		_ = json.NewEncoder(w).Encode(reply)
	}))
	t.Cleanup(i.Close)
	return i
}

// token is good for a time: servers let clocks differ by ten seconds.
func (i *issuer) token(t *testing.T, name string, within time.Duration) string {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": i.URL, "aud": "agents", "sub": name, "exp": time.Now().Add(within).Unix()})
	token.Header["kid"] = "1"
	text, err := token.SignedString(i.key)
	require.NoError(t, err)
	return text
}

// A token that expires ends the stream that it opened, and not the run: with a new one the client goes on behind what it has, each event
// once. A stream that would cancel its run when its client goes leaves the run alone, too.
func TestTokensThatExpireDuringAStream(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until tokens expire")
	}
	i := newIssuer(t)
	w := newWorld(t, "--jwt-issuer", i.URL, "--jwt-audience", "agents")
	w.token = i.token(t, "ann", time.Minute)
	id := w.thread()
	const ticks = 60 // in twelve seconds at least, so that the token expires before
	raw, err := json.Marshal(object{"assistant_id": "slow", "input": object{"steps": ticks, "delay_ms": 200}, "durability": "sync",
		"stream_mode": []string{"updates"}, "stream_resumable": true, "on_disconnect": "cancel"})
	require.NoError(t, err)
	w.token = i.token(t, "ann", -4*time.Second) // it has expired, and is let through for six seconds
	resp, err := http.DefaultClient.Do(w.request("POST", "/threads/"+id+"/runs/stream", bytes.NewReader(raw)))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	var text bytes.Buffer
	_, err = io.Copy(&text, resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the stream breaks off as that of a server that is killed")
	first := events(t, &text, func(sent) bool { return false })
	require.NotEmpty(t, first)
	require.NotEqual(t, "error", first[len(first)-1].Event)

	where := resp.Header.Get("Location")
	require.Equal(t, 401, w.ask("GET", where, nil, nil))
	w.token = i.token(t, "bob", time.Minute)
	require.Equal(t, 404, w.ask("GET", where, nil, nil))
	w.token = i.token(t, "ann", time.Minute)
	req := w.request("GET", where, nil)
	req.Header.Set("Last-Event-ID", first[len(first)-1].ID)
	again, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer again.Body.Close()
	require.Equal(t, 200, again.StatusCode)
	rest := events(t, again.Body, func(sent) bool { return false })
	var updates []string
	for _, e := range append(first, rest...) {
		if e.Event == "updates" {
			updates = append(updates, e.ID)
		}
	}
	require.Len(t, updates, ticks)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(updates))), ticks)
	require.Equal(t, []string{"success"}, w.statuses(id))
}

// A server that other machines reach is asked under its name, by who has a key.
func TestElsewhereThanOnThisMachine(t *testing.T) {
	w, file, _, _, _ := keyed(t)
	w.at, w.access = "0.0.0.0:0", []string{"--host-name", "agents.example.com", "--client-keys", file}
	w.startServe()
	w.base = "http://127.0.0.1" + w.base[strings.LastIndex(w.base, ":"):]
	for host, status := range map[string]int{"agents.example.com": 200, "agents.example.com:2024": 200, "localhost": 200, "evil.example": 421, "10.0.0.7:2024": 421, "": 200} {
		req := w.request("POST", "/threads/count", strings.NewReader("{}"))
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, status, resp.StatusCode, host)
	}
	require.Equal(t, 401, w.as("").ask("POST", "/threads/count", object{}, nil))
	req := w.request("POST", "/threads", strings.NewReader("{}"))
	req.Header.Set("Origin", "https://chat.example")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 403, resp.StatusCode, "a page that nobody named")
}

// A key that is taken away is good no more, for what is open too, and the server goes on with the others.
func TestKeysThatAreTakenAway(t *testing.T) {
	w, file, ann, bob, _ := keyed(t)
	id := w.thread()
	open := func(w *world, path string) *http.Response {
		resp, err := http.DefaultClient.Do(w.request("GET", path, nil))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, resp.Body.Close()) })
		require.Equal(t, 200, resp.StatusCode)
		return resp
	}
	stream := open(w, "/threads/"+id+"/stream")
	other := open(w.as(bob), "/threads/"+w.as(bob).thread()+"/stream")
	key, _, _ := strings.Cut(strings.TrimPrefix(ann, "superstep_"), "_")
	var wrong bytes.Buffer
	require.Zero(t, cli.Program{}.Run(context.Background(), []string{"serve", "keys", "remove", key, "--client-keys", file}, nil, io.Discard, &wrong), wrong.String())
	w.eventually("the key is refused", func() bool { return w.ask("GET", "/threads/"+id, nil, nil) == 401 })
	_, err := io.ReadAll(stream.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	line := make([]byte, 1)
	_, err = other.Body.Read(line)
	require.NoError(t, err, "the others stay")
}

// payState is the state of a graph that asks for an approval: clients are tested without one.
type payState struct {
	Amount superstep.Value[int64] `json:"amount"`
	Paid   superstep.Value[bool]  `json:"paid"`
}

func pay() superstep.Runnable {
	g := superstep.NewStateGraph[payState]("pay")
	g.AddNode("pay", func(ctx context.Context, s payState) (payState, error) {
		params, err := json.Marshal(map[string]int64{"amount": s.Amount.Get()})
		if err != nil {
			return s, err
		}
		decision, err := superstep.Approve(ctx, approval.Action{Tool: "pay", Summary: "Pay " + money(s.Amount.Get()), Params: params})
		if err == nil {
			s.Paid.Set(decision.Verdict == approval.VerdictApprove)
		}
		return s, err
	})
	chain(g, "pay")
	return g.MustCompile()
}
