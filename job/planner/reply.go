package planner

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
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
