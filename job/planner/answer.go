package planner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"superstep.dev/job"
)

// errCut says that a stream ended before its answer did.
var errCut = errors.New("the stream ended in the middle of the answer")

// answer is what came of a model.
type answer struct {
	text    []byte
	refusal []byte
	// finish is why the model stopped, "" while it has not.
	finish string
	usage  openai.CompletionUsage
	// long says that the answer is longer than maxAnswer: the rest was not read.
	long bool
}

// draft returns the plan in the answer, or says in a *job.BadPlanError what to do differently.
func (a answer) draft(req job.PlanRequest) (job.Draft, error) {
	switch {
	case len(a.refusal) > 0:
		return job.Draft{}, bad("", "the model refused: "+string(a.refusal))
	case a.finish == "content_filter":
		return job.Draft{}, bad("", "a content filter cut the answer off: put it in other words")
	case a.finish == "length":
		return job.Draft{}, bad("", "the answer was cut off at its length limit: plan fewer subjobs, with shorter texts")
	case a.long:
		return job.Draft{}, bad("", fmt.Sprintf("the answer is longer than %d bytes: plan fewer subjobs, with shorter texts", maxAnswer))
	}
	return extract(string(a.text), func(d job.Draft) error { return job.CheckPlan(d, req.Experts, req.MaxSubJobs) })
}

// read reads an answer: a stream, or, of endpoints that do not stream, all at once.
func read(r *http.Response) (answer, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		return readWhole(r.Body)
	case "text/html":
		return answer{}, &replyError{status: r.StatusCode, text: "a web page came instead of an answer"}
	}
	var a answer
	events := ssestream.NewDecoder(r)
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if bytes.Equal(data, []byte("[DONE]")) {
			return a, nil
		}
		if err := a.add(data); err != nil {
			return a, err
		}
		if a.long = len(a.text)+len(a.refusal) > maxAnswer; a.long {
			return a, nil
		}
	}
	switch {
	case a.finish != "": // only the usage may be missing
		return a, nil
	case events.Err() != nil:
		return a, fmt.Errorf("%w: %w", errCut, events.Err())
	}
	return a, errCut
}

// add takes an event of a stream.
func (a *answer) add(data []byte) error {
	var chunk openai.ChatCompletionChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return fmt.Errorf("an event of the stream is no JSON: %w", err)
	}
	if err := errorIn(chunk.JSON.ExtraFields["error"].Raw()); err != nil {
		return err
	}
	if chunk.JSON.Usage.Valid() {
		a.usage = chunk.Usage // some endpoints count up in every event
	}
	for _, c := range chunk.Choices {
		if c.Index == 0 {
			a.text = append(a.text, c.Delta.Content...)
			a.refusal = append(a.refusal, c.Delta.Refusal...)
			a.finish = cmp.Or(c.FinishReason, a.finish)
		}
	}
	return nil
}

func readWhole(body io.Reader) (answer, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errCut, err)
	}
	var whole openai.ChatCompletion
	if err := json.Unmarshal(data, &whole); err != nil {
		return answer{}, fmt.Errorf("the reply is no JSON: %w", err)
	}
	if err := errorIn(whole.JSON.ExtraFields["error"].Raw()); err != nil {
		return answer{}, err
	}
	if len(whole.Choices) == 0 {
		return answer{}, errors.New("the reply has no choices")
	}
	c := whole.Choices[0]
	return answer{
		text: []byte(c.Message.Content), refusal: []byte(c.Message.Refusal), finish: c.FinishReason,
		usage: whole.Usage, long: len(c.Message.Content) > maxAnswer,
	}, nil
}

// maxReply bounds what is read of a reply, in bytes. A stream wraps every few letters of an answer in some hundred bytes.
const maxReply = 32 * maxAnswer

// Why an exchange was given up.
var (
	errTimeout = errors.New("the answer was not there in time")
	errQuiet   = errors.New("nothing came for too long")
	errTooMuch = fmt.Errorf("the reply is longer than %d bytes", maxReply)
)

// watched ends an exchange in which nothing comes for too long: its context is then cancelled with errQuiet.
type watched struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	quiet  time.Duration
	timer  *time.Timer
	came   func()
}

func watch(ctx context.Context, quiet time.Duration, came func()) *watched {
	w := &watched{quiet: quiet, came: came}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(quiet, func() { w.cancel(errQuiet) })
	return w
}

func (w *watched) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// why returns what ended the exchange: err, or the reason for which it was cancelled.
func (w *watched) why(err error) error {
	if err == nil || w.ctx.Err() == nil {
		return err
	}
	return context.Cause(w.ctx)
}

// guard watches over what is read of a response, be it an answer or an error.
func (w *watched) guard(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(req)
	if err != nil {
		return nil, err
	}
	response.Body = &watchedBody{ReadCloser: response.Body, w: w, left: maxReply}
	return response, nil
}

type watchedBody struct {
	io.ReadCloser
	w    *watched
	left int
}

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	if n > 0 {
		b.left -= n
		b.w.timer.Reset(b.w.quiet)
		b.w.came()
	}
	return n, err
}
