package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// sse writes server-sent events. It is safe for concurrent use.
type sse struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	ctrl *http.ResponseController
	stop chan struct{}
}

// writeTimeout is how long a client may take to read what was written to it.
const writeTimeout = 30 * time.Second

// newSSE begins a stream, which says now and then that it is there until it is closed.
func newSSE(w http.ResponseWriter) *sse {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &sse{w: w, ctrl: http.NewResponseController(w), stop: make(chan struct{})}
	if s.ctrl.Flush() == nil { // clients wait for the headers before they do anything else
		go s.beats()
	}
	return s
}

func (s *sse) close() { close(s.stop) }

func (s *sse) beats() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if s.put([]byte(": heartbeat\n\n")) != nil {
				return
			}
		case <-s.stop:
			return
		}
	}
}

// send writes an event; without an id it has none.
func (s *sse) send(event string, data any, id string) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	out := fmt.Appendf(nil, "event: %s\ndata: %s\n", event, text)
	if id != "" {
		out = fmt.Appendf(out, "id: %s\n", id)
	}
	return s.put(append(out, '\n'))
}

func (s *sse) put(text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctrl.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.ctrl.Flush()
}
