package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"superstep.dev/examples/chat"
	"superstep.dev/examples/internal/approver"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

// room is the chat's processes, each of which can be killed.
type room struct {
	*testing.T
	stack           *stack.Stack
	worker, service *processes.Process
	page, base, key string
	pay             *payments.Client
}

// The agent's paces, the time that it takes for a word. What is killed or stopped in the middle of a message is that at a slow pace, at
// which most of the message takes a minute or more: it cannot have ended, however slow the machine is.
const (
	slow  = "500ms"
	quick = "10ms"
)

// newRoom starts them, with an agent of a pace.
func newRoom(t *testing.T, pace string) *room {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	dir := t.TempDir()
	set, ctx, err := processes.New(t.Context(), filepath.Join(dir, "logs"))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, set.Stop())
		if t.Failed() {
			t.Logf("the end of what the service wrote:\n%s", set.Tail("service", 30))
		}
	})
	root, err := stack.Root(ctx)
	require.NoError(t, err)
	programs, err := stack.Build(ctx, set, root, filepath.Join(dir, "bin"), stack.Chat, nil)
	require.NoError(t, err)
	a, err := approver.Prepare(dir)
	require.NoError(t, err)
	r := &room{T: t, key: a.Signing}
	r.stack, err = stack.Start(ctx, set, programs, stack.Config{Dir: dir, AnyPort: true, Drain: 5 * time.Second, Env: a.Env()})
	require.NoError(t, err)
	r.pay, err = payments.NewClient(r.stack.Payments)
	require.NoError(t, err)
	r.startWorker(pace)
	r.startService()
	return r
}

func (r *room) startWorker(pace string) {
	r.Helper()
	var err error
	r.worker, err = r.stack.Worker(r.Context(), "CHAT_PACE="+pace)
	require.NoError(r, err)
}

// killWorker kills the worker, and starts another one.
func (r *room) killWorker(pace string) {
	r.Helper()
	require.NoError(r, r.worker.Kill())
	r.startWorker(pace)
}

// startService starts the service, at the address that it had before.
func (r *room) startService() {
	r.Helper()
	var err error
	var address string
	r.service, r.page, address, err = r.stack.Service(r.Context(), strings.TrimPrefix(r.base, "http://"), "--key", r.key)
	require.NoError(r, err)
	r.base = "http://" + address
}

type object = map[string]any

func (r *room) send(method, path, after string, body any) *http.Response {
	r.Helper()
	raw, err := json.Marshal(body)
	require.NoError(r, err)
	req, err := http.NewRequestWithContext(r.Context(), method, r.base+path, bytes.NewReader(raw))
	require.NoError(r, err)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r, err)
	r.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// ask makes a request that has to go well, and decodes the answer.
func (r *room) ask(method, path string, body, into any) {
	r.Helper()
	resp := r.send(method, path, "", body)
	text, err := io.ReadAll(resp.Body)
	require.NoError(r, err)
	require.Less(r, resp.StatusCode, 300, "%s %s: %s", method, path, text)
	if into != nil {
		require.NoError(r, json.Unmarshal(text, into), "%s", text)
	}
}

// reading is a run's stream as the page reads it: over all connections that it takes, with what the agent has said so far.
type reading struct {
	*room
	thread, run, after string
	lines              *bufio.Scanner
	ids                []string
	said               map[string]string // whole messages as far as they have come, by their ids
	over               bool
}

func (r *room) thread(title string) string {
	var made struct {
		ID string `json:"thread_id"`
	}
	r.ask("POST", "/threads", object{"metadata": object{"graph_id": chat.Name, "title": title}}, &made)
	return made.ID
}

// begin asks for a run with the body that the page sends.
func (r *room) begin(thread string, what object) *reading {
	r.Helper()
	body := object{"assistant_id": chat.Name, "stream_mode": []string{"messages", "values"}, "stream_resumable": true,
		"on_disconnect": "continue", "multitask_strategy": "reject"}
	for name, v := range what {
		body[name] = v
	}
	resp := r.send("POST", "/threads/"+thread+"/runs/stream", "", body)
	require.Equal(r, 200, resp.StatusCode)
	at := strings.Split(resp.Header.Get("Content-Location"), "/")
	return &reading{room: r, thread: thread, run: at[len(at)-1], lines: linesOf(resp.Body), said: map[string]string{}}
}

// linesOf are those of a stream: an event is one line.
func linesOf(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	return lines
}

// rejoin goes on behind the last event.
func (s *reading) rejoin() {
	s.Helper()
	resp := s.send("GET", "/threads/"+s.thread+"/runs/"+s.run+"/stream", s.after, nil)
	require.Equal(s, 200, resp.StatusCode)
	s.lines, s.over = linesOf(resp.Body), false
}

// until reads until what the agent has said is enough, or the stream ends or breaks off.
func (s *reading) until(enough func(said string) bool) {
	s.Helper()
	var event, data string
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "event":
			event = value
		case "data":
			data = value
		case "id":
			s.after = value
			require.NotContains(s, s.ids, value, "an event came twice")
			s.ids = append(s.ids, value)
		case "":
			if event == "messages/partial" {
				s.take(data)
				if enough(s.all()) {
					return
				}
			}
			require.NotEqual(s, "error", event, data)
			event = ""
		}
	}
	s.over = true
}

// take takes in a message as far as it has come: longer than before, and with the same beginning.
func (s *reading) take(data string) {
	s.Helper()
	var now []struct{ ID, Content string }
	require.NoError(s, json.Unmarshal([]byte(data), &now))
	for _, m := range now {
		before := s.said[m.ID]
		require.True(s, strings.HasPrefix(m.Content, before), "%q is followed by %q", before, m.Content)
		s.said[m.ID] = m.Content
	}
}

func (s *reading) all() string {
	var all []string
	for _, text := range s.said {
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

func longer(n int) func(string) bool { return func(said string) bool { return len(said) >= n } }
func never(string) bool              { return false }

// state is what a thread's state has that the page looks at.
type state struct {
	Values struct {
		Messages []struct{ ID, Type, Content string } `json:"messages"`
	} `json:"values"`
	Interrupts []struct {
		ID     string          `json:"id"`
		Schema json.RawMessage `json:"response_schema"`
	} `json:"interrupts"`
	Checkpoint struct {
		ID string `json:"checkpoint_id"`
	} `json:"checkpoint"`
}

func (r *room) state(thread string) (s state) {
	r.Helper()
	r.ask("GET", "/threads/"+thread+"/state", nil, &s)
	return s
}

func (s state) last() string { return s.Values.Messages[len(s.Values.Messages)-1].Content }

func human(text string) object {
	return object{"messages": []object{{"type": "human", "id": uuid.NewString(), "content": text}}}
}

// The worker is killed in the middle of a stream, and so is the service: the page goes on behind its last event, and has each word once.
func TestNoWordIsLostOrDoubled(t *testing.T) {
	r := newRoom(t, slow)
	thread := r.thread("What can you do?")
	s := r.begin(thread, object{"input": human("What can you do?")})
	s.until(longer(20))
	require.False(t, s.over)
	r.killWorker(slow)
	s.until(longer(50))
	require.False(t, s.over)
	require.NoError(t, r.service.Kill())
	s.until(never)
	r.startService()
	s.rejoin()
	s.until(longer(80))
	require.False(t, s.over)
	require.NoError(t, r.service.Stop())
	s.until(never)
	r.startService()
	s.rejoin()
	s.until(longer(100))
	require.False(t, s.over)
	require.Less(t, len(s.all()), len(chat.Help), "all that was in the middle")
	r.killWorker(quick)
	s.until(never)
	require.Equal(t, chat.Help, s.all())
	require.Equal(t, chat.Help, r.state(thread).last())

	again := &reading{room: r, thread: thread, run: s.run, after: "-1", said: map[string]string{}}
	again.rejoin()
	again.until(never)
	require.Equal(t, s.ids, again.ids, "who reads it later has the same events")
	require.Equal(t, chat.Help, again.all())
}

// approval is an approval as the page gets it.
type approval struct {
	ID     string `json:"id"`
	Action struct {
		Summary    string `json:"summary"`
		Digest     string `json:"digest"`
		ParamsHash string `json:"params_hash"`
	} `json:"action"`
}

func (r *room) approvals(thread string) (running bool, open []approval) {
	r.Helper()
	var out struct {
		Running   bool       `json:"running"`
		Approvals []approval `json:"approvals"`
	}
	r.ask("GET", "/chat/threads/"+thread, nil, &out)
	return out.Running, out.Approvals
}

// reply answers an approval as the page does, and returns the status.
func (r *room) reply(thread string, a approval, id, verdict string) int {
	r.Helper()
	return r.send("POST", "/chat/threads/"+thread+"/approvals", "", object{"id": id, "question": a.ID, "digest": a.Action.Digest,
		"params_hash": a.Action.ParamsHash, "reply": object{"verdict": verdict}}).StatusCode
}

// A question and an approval, with the worker killed while the refund is in flight, and the service while the thread goes on: one refund,
// and the words about it are read behind those from before the approval.
func TestOneRefund(t *testing.T) {
	r := newRoom(t, quick)
	thread := r.thread("Refund order o-1042")
	s := r.begin(thread, object{"input": human("Refund order o-1042, please.")})
	s.until(never)
	asked := r.state(thread).Interrupts
	require.Len(t, asked, 1)
	require.Contains(t, string(asked[0].Schema), "not wanted")

	s = r.begin(thread, object{"command": object{"resume": object{"reason": "damaged"}}})
	s.until(never)
	running, open := r.approvals(thread)
	require.False(t, running)
	require.Len(t, open, 1)
	require.Equal(t, "Refund 250.00 to order o-1042", open[0].Action.Summary)
	other := open[0]
	other.Action.ParamsHash = "sha256:" + strings.Repeat("0", 64)
	require.Equal(t, http.StatusConflict, r.reply(thread, other, "other", "approve"), "of something else than what is asked")
	require.Equal(t, http.StatusUnprocessableEntity, r.reply(thread, open[0], "", "perhaps"))
	require.Equal(t, http.StatusForbidden, r.send("POST", "/threads/"+thread+"/runs", "", object{"assistant_id": chat.Name,
		"command": object{"resume": object{"verdict": "approve"}}}).StatusCode, "an approval is not answered around its gate")

	require.NoError(t, r.pay.SetFaults(t.Context(), payments.Faults{HangAfterCommit: 1}))
	require.Equal(t, 200, r.reply(thread, open[0], "yes", "approve"))
	require.Equal(t, 200, r.reply(thread, open[0], "yes", "approve"), "the reply was lost, and is sent again")
	require.Eventually(t, func() bool {
		stats, err := r.pay.Stats(t.Context())
		return err == nil && stats.Refunds.Committed == 1
	}, 2*time.Minute, 20*time.Millisecond)
	running, _ = r.approvals(thread)
	require.True(t, running)
	r.killWorker(quick)
	require.NoError(t, r.service.Kill())
	r.startService()
	require.Eventually(t, func() bool {
		running, _ := r.approvals(thread)
		return !running
	}, 3*time.Minute, 50*time.Millisecond, "the thread goes on without the service, and at another worker")
	last := r.state(thread).last()
	require.Regexp(t, `^Done: refunded 250\.00: \S+\. The money is on its way, once\.$`, last)
	receipts, err := r.pay.Refunds(t.Context(), "o-1042")
	require.NoError(t, err)
	require.Len(t, receipts, 1)
	stats, err := r.pay.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Refunds.Committed)
	require.EqualValues(t, 1, stats.Refunds.Keys)
}

// A thread that goes on after an approval is stopped though no run of the protocol is under way; a run is stopped by its cancellation.
func TestStop(t *testing.T) {
	r := newRoom(t, slow)
	thread := r.thread("What can you do?")
	s := r.begin(thread, object{"input": human("What can you do?")})
	s.until(longer(20))
	r.ask("POST", "/threads/"+thread+"/runs/"+s.run+"/cancel?wait=0", nil, nil)
	s.until(never)
	require.Less(t, len(s.all()), len(chat.Help))
	r.killWorker(quick)
	s = r.begin(thread, object{"input": human("Refund order o-1042, please.")})
	s.until(never)
	s = r.begin(thread, object{"command": object{"resume": object{"reason": "late"}}})
	s.until(never)
	_, open := r.approvals(thread)
	require.Len(t, open, 1)
	require.NoError(t, r.pay.SetFaults(t.Context(), payments.Faults{SlowMS: 600_000}))
	require.Equal(t, 200, r.reply(thread, open[0], "yes", "approve"))
	require.Equal(t, 404, r.send("POST", "/threads/"+thread+"/runs/"+s.run+"/cancel?wait=0", "", nil).StatusCode)
	r.ask("POST", "/chat/threads/"+thread+"/stop", nil, nil)
	require.Eventually(t, func() bool { running, _ := r.approvals(thread); return !running }, 3*time.Minute, 50*time.Millisecond)
}
