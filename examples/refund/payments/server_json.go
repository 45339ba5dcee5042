package payments

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	maxRequestBody = 64 << 10
	bodyTimeout    = 10 * time.Second
)

// problem is the body of every answer that is not a success.
type problem struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// decode reads the whole body as one JSON object without unknown fields; an
// empty body leaves into as it is. A misspelt field is refused rather than
// dropped: a dropped "amount" would be a refund of nothing.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	// A deadline for the body alone: the server has none for the whole request,
	// since hanging on purpose is one of its features. Recorders in tests have
	// no connection to set it on.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBody))
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		return refuse(statusMalformed, CodeBadRequest, "read the body: %v", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return refuse(statusMalformed, CodeBadRequest, "the body: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return refuse(statusMalformed, CodeBadRequest, "the body holds more than one JSON value")
	}
	return nil
}

func statusOf(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// answer writes what a read came to.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, value any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, http.StatusOK, value)
}

// fail writes a refusal as it is, and everything else as 503: the caller cannot
// mend it, and may try again.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var body problem
	status := http.StatusServiceUnavailable
	var refused *RejectedError
	if errors.As(err, &refused) {
		status = refused.Status
		body.Error.Code, body.Error.Message = refused.Code, refused.Message
	} else {
		s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		body.Error.Code, body.Error.Message = CodeUnavailable, err.Error()
	}
	s.reply(w, status, body)
}

// reply writes a JSON answer. A failed write means the caller has gone, who
// will ask again.
func (s *Server) reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
