package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"superstep.dev/job"
)

// maxWait bounds the wait that an endpoint can ask for: whoever waits for the job should see it go on.
const maxWait = 15 * time.Minute

// replyError is what an endpoint says instead of an answer: as the status and the body of its reply, or in a stream.
type replyError struct {
	status int // 0 in a stream that does not say
	code   string
	text   string
	wait   time.Duration
}

func (e *replyError) Error() string { return e.text }

// asReply returns what the endpoint said, without the request that the client's error holds.
func asReply(err error) error {
	var api *openai.Error
	if !errors.As(err, &api) {
		return err
	}
	e := &replyError{status: api.StatusCode, code: api.Code, text: api.Message, wait: waitOf(api.Response.Header, time.Now())}
	if e.text == "" { // not the API's shape
		body, _ := io.ReadAll(io.LimitReader(api.Response.Body, 4096))
		e.text = strings.Join(strings.Fields(string(body)), " ")
	}
	if api.Param != "" && !strings.Contains(e.text, api.Param) {
		e.text += " (" + api.Param + ")"
	}
	if e.text == "" {
		e.text = strings.ToLower(http.StatusText(e.status))
	}
	return e
}

// waitOf reads Retry-After, which is seconds or a date.
func waitOf(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	after := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(after, 64); err == nil {
		wait = time.Duration(min(seconds, maxWait.Seconds()) * float64(time.Second))
	} else if date, err := http.ParseTime(after); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxWait)
}

// errorIn reads the "error" of a reply or an event that has one: a text, or an object.
func errorIn(raw string) error {
	if raw == "" || raw == "null" {
		return nil
	}
	var said struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal([]byte(raw), &said) != nil || said.Message == "" {
		return &replyError{text: raw}
	}
	e := &replyError{text: said.Message, code: said.Type}
	if status, err := strconv.Atoi(string(said.Code)); err == nil {
		e.status = status
	} else if code := strings.Trim(string(said.Code), `"`); code != "" && code != "null" {
		e.code = code
	}
	return e
}

// passing are the statuses below 500 after which the same request may succeed.
var passing = []int{0, http.StatusOK, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests}

// final reports whether the same request fails again.
func (e *replyError) final() bool {
	switch e.code {
	case "insufficient_quota", "invalid_api_key", "invalid_request_error", "context_length_exceeded", "model_not_found":
		return e.status < 500
	}
	return e.status < 500 && !slices.Contains(passing, e.status)
}

// advice says what to do about it, "" when waiting is all.
func (e *replyError) advice() string {
	mentions := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(e.code+" "+e.text, w) })
	}
	switch {
	case e.status == http.StatusOK || e.status == http.StatusMethodNotAllowed:
		return "set OPENAI_BASE_URL to the API's address, such as https://host/v1"
	case e.code == "insufficient_quota" || e.status == http.StatusPaymentRequired:
		return "raise the limits of the account, then recover the job"
	case !e.final():
		return ""
	case e.status == http.StatusUnauthorized || e.code == "invalid_api_key":
		return "set OPENAI_API_KEY to a key of this endpoint"
	case e.status == http.StatusForbidden:
		return "use a key, or a model, that is allowed here"
	case e.status == http.StatusNotFound || e.code == "model_not_found":
		return "check the model's name and OPENAI_BASE_URL, which often ends in /v1"
	case mentions("context_length", "context length", "maximum context"):
		return "shorten the job's goal and context, or use a model that reads more"
	case mentions("temperature"):
		return "leave Config.Temperature out"
	case mentions("max_completion_tokens", "max_tokens"):
		return "lower Config.MaxTokens, or leave it out"
	}
	return "change the planner's Config so that the endpoint takes the request"
}

// The fields of a request that some endpoints do not take, and that it can do without.
const (
	fieldFormat = "response_format"
	fieldUsage  = "stream_options"
)

// refusedField returns which field the endpoint does not take, "" when it is not that.
func refusedField(err error) string {
	var e *replyError
	if !errors.As(err, &e) || !slices.Contains([]int{400, 404, 415, 422, 501}, e.status) {
		return ""
	}
	text := strings.ToLower(e.code + " " + e.text)
	for _, f := range []struct{ word, field string }{
		{"stream_options", fieldUsage}, {"include_usage", fieldUsage},
		{"response_format", fieldFormat}, {"json_schema", fieldFormat}, {"structured output", fieldFormat}, {"response format", fieldFormat},
	} {
		if strings.Contains(text, f.word) {
			return f.field
		}
	}
	return ""
}

// Error says that a planner gave no answer, good or bad. Asking again may help unless it is Final.
type Error struct {
	Job    string
	SubJob string // what was to be planned, "" for the whole job
	// Planner is who was asked: a model and where it is served, or the rules.
	Planner string
	// Status is the HTTP status of the reply, 0 when there was none.
	Status  int
	Problem string
	Do      string // what to do about it, "" when waiting is all
	// Wait is how long the endpoint asks to be left alone: at most 15 minutes, 0 when it says nothing.
	Wait time.Duration
	// Final says that asking again the same way fails again.
	Final bool
	cause error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s: ", e.Job)
	if e.SubJob != "" {
		fmt.Fprintf(&b, "subjob %s: ", e.SubJob)
	}
	b.WriteString(e.Planner + ": ")
	if e.Status != 0 {
		fmt.Fprintf(&b, "HTTP %d: ", e.Status)
	}
	b.WriteString(e.Problem)
	if e.Do != "" {
		b.WriteString(": " + e.Do)
	}
	return b.String()
}

// Unwrap returns what broke the exchange: of the network, or of the context. What an endpoint replied is not wrapped,
// because the client's errors hold the request, and with it the key.
func (e *Error) Unwrap() error { return e.cause }

// Permanent reports whether the activity that called the planner is to fail for good.
func (e *Error) Permanent() bool { return e.Final }

// NextRetryDelay is when to ask again; 0 leaves that to the retry policy.
func (e *Error) NextRetryDelay() time.Duration { return e.Wait }

// explain makes an [Error] of what broke an exchange. The key is in none of its texts, whatever the endpoint says.
func (p *OpenAI) explain(ctx context.Context, err error) *Error {
	e := &Error{}
	if reply, is := errors.AsType[*replyError](err); is {
		e.Status, e.Problem, e.Do, e.Wait, e.Final = reply.status, reply.text, reply.advice(), reply.wait, reply.final()
	} else {
		if where, is := errors.AsType[*url.Error](err); is {
			err = where.Err // its text has the whole address
		}
		e.Problem, e.Do = err.Error(), adviceFor(ctx, err)
		if p.keyless(e.Problem) == e.Problem {
			e.cause = err
		}
	}
	e.Problem = clip(p.keyless(e.Problem), 500)
	return e
}

// keyless returns text without the key.
func (p *OpenAI) keyless(text string) string {
	if p.config.APIKey == "" {
		return text
	}
	return strings.ReplaceAll(text, p.config.APIKey, "[the key]")
}

func adviceFor(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil: // whoever called knows why
		return ""
	case errors.Is(err, errTimeout):
		return "if that is usual for the model, raise Config.Timeout"
	case errors.Is(err, errQuiet):
		return "if that is usual for the model, raise Config.Quiet"
	}
	return ""
}

// maxTokens is more than any exchange has: a report above it is wrong.
const maxTokens = 1_000_000_000

// cost returns what an exchange has cost, unknown when the endpoint does not say, or says nonsense.
func (c Config) cost(u openai.CompletionUsage) job.Usage {
	in, out := u.PromptTokens, u.CompletionTokens
	total := max(u.TotalTokens, in+out)
	if min(in, out) < 0 || max(in, out, total) > maxTokens || total <= 0 {
		return job.Usage{Unknown: true}
	}
	const million = 1_000_000
	return job.Usage{Tokens: total, MicroUSD: (in*c.InputPrice + out*c.OutputPrice + million - 1) / million}
}
