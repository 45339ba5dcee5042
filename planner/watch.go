package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"
)

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
