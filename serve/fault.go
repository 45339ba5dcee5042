package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"superstep.dev/serve/access"
	"superstep.dev/serve/assistant"
	"superstep.dev/serve/cron"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// fault is a refused request.
type fault struct {
	status int
	detail string
}

// Error implements error in one line.
func (f *fault) Error() string { return f.detail }

func refuse(status int, format string, args ...any) error {
	return &fault{status, fmt.Sprintf(format, args...)}
}

// statuses are the responses for the kinds of errors.
var statuses = []struct {
	kind   error
	status int
}{
	{access.ErrForbidden, http.StatusForbidden},
	{errExpired, http.StatusUnauthorized},
	{record.ErrMissing, http.StatusNotFound},
	{record.ErrExists, http.StatusConflict},
	{record.ErrBusy, http.StatusConflict},
	{record.ErrTooLarge, http.StatusUnprocessableEntity},
	{assistant.ErrMissing, http.StatusNotFound},
	{assistant.ErrExists, http.StatusConflict},
	{assistant.ErrTooLarge, http.StatusUnprocessableEntity},
	{cron.ErrMissing, http.StatusNotFound},
	{cron.ErrBadSchedule, http.StatusUnprocessableEntity},
	{cron.ErrTooLarge, http.StatusUnprocessableEntity},
	{thread.ErrNotFound, http.StatusNotFound},
	{thread.ErrRunning, http.StatusConflict},
	{thread.ErrErasing, http.StatusConflict},
	{thread.ErrBadInput, http.StatusBadRequest},
	{thread.ErrAnswerRefused, http.StatusConflict},
	{thread.ErrNotFailed, http.StatusConflict},
	{thread.ErrNoWorker, http.StatusServiceUnavailable},
	{thread.ErrBusy, http.StatusServiceUnavailable},
	{thread.ErrNoServer, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusGatewayTimeout},
}

// faultOf is an error as clients see it.
func faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	for _, s := range statuses {
		if errors.Is(err, s.kind) {
			return &fault{s.status, toCallers(err)}
		}
	}
	return &fault{http.StatusInternalServerError, "the server could not do that: its log says why"}
}

// toCallers is an error's text without the command that somebody at a terminal would type next.
func toCallers(err error) string {
	if failed, ok := err.(*thread.Error); ok && len(failed.Command) > 0 {
		plain := *failed
		plain.Do, plain.Command = "", nil
		return plain.Error()
	}
	return err.Error()
}

// answer writes a value as the response.
func answer(w http.ResponseWriter, status int, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"detail": "the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(raw, '\n')); err != nil {
		return // the client has gone
	}
}
