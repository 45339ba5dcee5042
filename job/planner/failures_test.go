package planner

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/job"
)

// TestAnswersThatAreNoPlan cost a plan attempt and say what to do differently; what they have cost is known.
func TestAnswersThatAreNoPlan(t *testing.T) {
	refusal := event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"refusal": "I can't help with that."}, "finish_reason": "stop"}}})
	for name, c := range map[string]struct {
		reply   reply
		problem string
	}{
		"empty":          {streams(chunk("", "stop"), usageChunk(9, 1), done), "the answer is empty"},
		"prose":          {streams(chunk("First load, then write.", "stop"), usageChunk(9, 1), done), "the answer is no JSON"},
		"refusal":        {streams(refusal, usageChunk(9, 1), done), "the model refused: I can't help with that."},
		"filtered":       {streams(chunk(goodPlan, ""), chunk("", "content_filter"), usageChunk(9, 1), done), "content filter"},
		"truncated":      {streams(chunk(goodPlan[:200], ""), chunk("", "length"), usageChunk(9, 1), done), "cut off at its length limit: plan fewer subjobs"},
		"only reasoning": {streams(event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"reasoning_content": goodPlan}, "finish_reason": "stop"}}}), usageChunk(9, 1), done), "the answer is empty"},
		"another choice": {streams(event(map[string]any{"choices": []any{map[string]any{"index": 1, "delta": map[string]any{"content": goodPlan}}}}), chunk("", "stop"), usageChunk(9, 1), done), "the answer is empty"},
		"no subjobs":     {streams(chunk(`{"subjobs": []}`, "stop"), usageChunk(9, 1), done), "no subjobs"},
	} {
		t.Run(name, func(t *testing.T) {
			draft, err := newStub(t, c.reply).planner(t).Plan(t.Context(), request())
			var bad *job.BadPlanError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, c.problem)
			require.Equal(t, job.Draft{Usage: job.Usage{Tokens: 10}}, draft)
		})
	}
}

// TestHugeAnswer is read up to its bound and not further, in one event or in many, streamed or not.
func TestHugeAnswer(t *testing.T) {
	endless := func(size int) reply {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, chunk(strings.Repeat("x", size), ""))
			}
		}
	}
	whole := says(200, "application/json", `{"choices": [{"message": {"content": "`+strings.Repeat("x", maxAnswer+1)+`"}, "finish_reason": "stop"}]}`)
	for _, r := range []reply{endless(4000), endless(3 << 20), whole} {
		draft, err := newStub(t, r).planner(t).Plan(t.Context(), request())
		require.ErrorAs(t, err, new(*job.BadPlanError))
		require.ErrorContains(t, err, "longer than 2097152 bytes: plan fewer subjobs")
		require.True(t, draft.Usage.Unknown)
	}
}

func TestWhatEndpointsReply(t *testing.T) {
	soon := time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat) // what comes before that one takes less than half of it
	for name, c := range map[string]struct {
		reply reply
		final bool
		wait  time.Duration // at most, and at least half of it
		text  string
	}{
		"timeout":           {fails(408, "", "slow"), false, 0, "HTTP 408: slow"},
		"conflict":          {fails(409, "", "busy"), false, 0, "HTTP 409: busy"},
		"too many":          {fails(429, "rate_limit_exceeded", "slow down", "Retry-After", "7"), false, 7 * time.Second, "HTTP 429: slow down"},
		"till a date":       {fails(429, "", "slow down", "Retry-After", soon), false, 10 * time.Minute, "slow down"},
		"for ever":          {fails(503, "", "full", "Retry-After", "1e300"), false, maxWait, "full"},
		"nonsense wait":     {fails(503, "", "full", "Retry-After", "NaN"), false, 0, "full"},
		"in the past":       {fails(503, "", "full", "Retry-After", "-5"), false, 0, "full"},
		"no money":          {fails(429, "insufficient_quota", "You exceeded your current quota"), true, 0, "raise the limits of the account"},
		"server error":      {fails(500, "", "oops"), false, 0, "HTTP 500: oops"},
		"bad gateway":       {says(502, "text/html", "<html>\n<h1>Bad\tGateway</h1>"), false, 0, "HTTP 502: <html> <h1>Bad Gateway</h1>"},
		"nothing said":      {says(504, "text/plain", ""), false, 0, "HTTP 504: gateway timeout"},
		"bad request":       {fails(400, "", "no such thing"), true, 0, "HTTP 400: no such thing: change the planner's Config"},
		"too long":          {fails(400, "context_length_exceeded", "maximum context length is 8192"), true, 0, "shorten the job's goal and context"},
		"temperature":       {fails(400, "unsupported_value", "'temperature' does not support 0.2"), true, 0, "leave Config.Temperature out"},
		"wrong key":         {fails(401, "invalid_api_key", "Incorrect API key"), true, 0, "set OPENAI_API_KEY to a key of this endpoint"},
		"forbidden":         {fails(403, "", "not in your region"), true, 0, "use a key, or a model, that is allowed here"},
		"no model":          {fails(404, "model_not_found", "The model does not exist"), true, 0, "check the model's name"},
		"other shape":       {says(422, "application/json", `{"detail": [{"loc": ["body"]}]}`), true, 0, `{"detail": [{"loc": ["body"]}]}`},
		"web page":          {says(200, "text/html; charset=utf-8", "<html>log in</html>"), false, 0, "a web page came instead of an answer: set OPENAI_BASE_URL"},
		"no JSON":           {says(200, "application/json", "{"), false, 0, "the reply is no JSON"},
		"no choices":        {says(200, "application/json", "{}"), false, 0, "the reply has no choices"},
		"error as answer":   {says(200, "application/json", `{"error": {"message": "upstream is full", "code": 429}}`), false, 0, "HTTP 429: upstream is full"},
		"error in stream":   {streams(chunk(`{"sub`, ""), event(map[string]any{"error": map[string]any{"message": "the model crashed", "type": "server_error", "code": nil}})), false, 0, "the model crashed"},
		"text in stream":    {streams(event(map[string]any{"error": "out of memory"})), false, 0, "out of memory"},
		"refused in stream": {streams(event(map[string]any{"error": map[string]any{"message": "no", "code": "invalid_api_key"}})), true, 0, "set OPENAI_API_KEY"},
		"no JSON in stream": {streams("data: {]\n\n"), false, 0, "an event of the stream is no JSON"},
		"wrong stream":      {streams("event: ping\n\n", "hello\n\n"), false, 0, "the stream ended in the middle of the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			draft, err := newStub(t, c.reply).planner(t).Plan(t.Context(), request())
			require.Empty(t, draft)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.ErrorContains(t, err, c.text)
			require.ErrorContains(t, err, "job j-1: the model test-model at 127.0.0.1:")
			require.Equal(t, c.final, e.Permanent())
			require.LessOrEqual(t, e.NextRetryDelay(), c.wait)
			require.GreaterOrEqual(t, e.NextRetryDelay(), c.wait/2)
		})
	}
}

// cut sends what it is given and breaks the connection.
func cut(events ...string) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		if len(events) > 0 {
			streams(events...)(w, r)
		}
		panic(http.ErrAbortHandler)
	}
}

// hangs sends what it is given, and then nothing, until whoever asked goes away.
func hangs(events ...string) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		streams(events...)(w, r)
		<-r.Context().Done()
	}
}

// trickles sends a comment from time to time, which keeps a connection busy for ever.
func trickles(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		streams(": still here\n\n")(w, r)
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestBrokenExchanges(t *testing.T) {
	patient := func(*Config) {}
	quick := func(c *Config) { c.Quiet = 100 * time.Millisecond }
	short := func(c *Config) { c.Timeout = 200 * time.Millisecond }
	for name, c := range map[string]struct {
		reply  reply
		change func(*Config)
		is     error
		text   string
	}{
		"cut at once":         {cut(), patient, io.EOF, "EOF"},
		"cut in the middle":   {cut(chunk(goodPlan[:50], "")), patient, io.ErrUnexpectedEOF, "in the middle of the answer"},
		"ended in the middle": {streams(chunk(goodPlan[:50], "")), patient, errCut, "in the middle of the answer"},
		"no headers":          {hangs(), quick, errQuiet, "raise Config.Quiet"},
		"stalled":             {hangs(chunk(goodPlan[:50], "")), quick, errQuiet, "raise Config.Quiet"},
		"trickles":            {trickles, short, errTimeout, "raise Config.Timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, c.reply)
			_, err := s.planner(t, c.change).Plan(t.Context(), request())
			var e *Error
			require.ErrorAs(t, err, &e)
			require.False(t, e.Permanent())
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.text)
			require.Len(t, s.seen().asked, 1, "whoever called retries")
		})
	}
}

// TestWholeAnswers: what came whole counts, however the exchange ended.
func TestWholeAnswers(t *testing.T) {
	for name, r := range map[string]reply{
		"cut before the usage":     cut(chunk(goodPlan, "stop")),
		"stalled before the usage": hangs(chunk(goodPlan, "stop")),
		"ended without a mark":     streams(chunk(goodPlan, "stop")),
		"no reason to finish":      streams(chunk(goodPlan, ""), done),
		"not streamed":             says(200, "application/json", `{"choices": [{"message": {"content": `+quoteJSON(goodPlan)+`}, "finish_reason": "stop"}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			draft, err := newStub(t, r).planner(t, func(c *Config) {
				if name == "stalled before the usage" {
					c.Quiet = 5 * time.Second // within which the answer has to come
				}
			}).Plan(t.Context(), request())
			require.NoError(t, err)
			require.Equal(t, goodDraft, draft.SubJobs)
			require.True(t, draft.Usage.Unknown)
		})
	}
}

func quoteJSON(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestUsageThatCannotBe(t *testing.T) {
	for _, u := range [][2]int64{{-1, 5}, {maxTokens, 1}, {0, 0}, {1 << 62, 1 << 62}} {
		draft, err := newStub(t, streams(chunk(goodPlan, "stop"), usageChunk(u[0], u[1]), done)).planner(t).Plan(t.Context(), request())
		require.NoError(t, err)
		require.Equal(t, job.Usage{Unknown: true}, draft.Usage)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newStub(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done() // the request is ended too
	})
	_, err := s.planner(t).Plan(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
}
