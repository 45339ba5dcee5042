package planner

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/job"
)

const testKey = "sk-very-secret-4711"

// reply is what the stub does with one request.
type reply func(w http.ResponseWriter, r *http.Request)

// stub is an endpoint that speaks the chat completions API: it gives its replies one after the other, the last one for ever,
// and keeps what it was asked.
type stub struct {
	*httptest.Server
	mu      sync.Mutex
	replies []reply
	kept    requests
}

// requests are what a stub was asked: decoded, as it came, and with which headers.
type requests struct {
	asked   []map[string]any
	raw     []string
	headers []http.Header
}

func (s *stub) seen() requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept
}

func newStub(t *testing.T, replies ...reply) *stub {
	s := &stub{replies: replies}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections() // of those that a test left hanging
		s.Close()
	})
	return s
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var asked map[string]any
	if err != nil || json.Unmarshal(body, &asked) != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		http.Error(w, `{"error": {"message": "not a chat completion"}}`, http.StatusTeapot)
		return
	}
	s.mu.Lock()
	k := &s.kept
	k.asked, k.raw, k.headers = append(k.asked, asked), append(k.raw, string(body)), append(k.headers, r.Header)
	next := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	s.mu.Unlock()
	next(w, r)
}

// planner returns one that asks the stub, with changes to its Config.
func (s *stub) planner(t *testing.T, change ...func(*Config)) *OpenAI {
	c := Config{Model: "test-model", BaseURL: s.URL + "/v1", APIKey: testKey}
	for _, f := range change {
		f(&c)
	}
	p, err := NewOpenAI(c)
	require.NoError(t, err)
	return p
}

// chunk is an event of a stream: a piece of text, and why the model stops, "" while it does not.
func chunk(text, finish string) string {
	c := map[string]any{"index": 0, "delta": map[string]any{"content": text}, "finish_reason": nil}
	if finish != "" {
		c["finish_reason"] = finish
	}
	return event(map[string]any{"id": "c-1", "object": "chat.completion.chunk", "model": "m", "created": 1, "choices": []any{c}})
}

func usageChunk(in, out int64) string {
	return event(map[string]any{"choices": []any{}, "usage": map[string]any{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
	}})
}

func event(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("data: %s\n\n", data)
}

const done = "data: [DONE]\n\n"

// streams sends events, each as soon as it is written.
func streams(events ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range events {
			if _, err := io.WriteString(w, e); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

// answers streams text letter by letter, as models do, and then what it cost.
func answers(text string) reply {
	var events []string
	for _, r := range text {
		events = append(events, chunk(string(r), ""))
	}
	return streams(append(events, chunk("", "stop"), usageChunk(100, 20), done)...)
}

// says replies with a status, a type and a body.
func says(status int, kind, body string, headers ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// fails replies as the API does to a request that it does not take.
func fails(status int, code, message string, headers ...string) reply {
	body, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "code": code, "type": "t", "param": nil}})
	if err != nil {
		panic(err)
	}
	return says(status, "application/json", string(body), headers...)
}

var testExperts = []job.Profile{
	{Name: "loader", Graph: "loader", Description: "Loads CSV files. Needs a path."},
	{Name: "writer", Graph: "writer", Description: "Writes reports. Does not compute."},
}

func request() job.PlanRequest {
	return job.PlanRequest{
		Job:     job.Job{ID: "j-1", Goal: "describe the penguins", Context: "use {penguins}.csv"},
		Experts: testExperts, Attempt: 1, MaxSubJobs: 20,
	}
}

const goodPlan = `{"subjobs": [
 {"id": "1", "thinking": "", "goal": "load", "context": "", "completion_criteria": "", "dependencies": [], "assigned_expert": "loader", "output_schema": ""},
 {"id": "2", "thinking": "", "goal": "write", "context": "", "completion_criteria": "", "dependencies": ["1"], "assigned_expert": "writer", "output_schema": ""}]}`

var goodDraft = []job.DraftSubJob{
	{ID: "1", Goal: "load", Expert: "loader"},
	{ID: "2", Goal: "write", Expert: "writer", Dependencies: []string{"1"}},
}
