package cli

import (
	"io"
	"net/http"
	"sync/atomic"
)

// healthState is what a worker says of itself.
type healthState int32

// The states of a worker.
const (
	healthStarting healthState = iota
	healthReady
	healthDraining
)

// String implements fmt.Stringer.
func (s healthState) String() string {
	switch s {
	case healthReady:
		return "ready"
	case healthDraining:
		return "draining"
	default:
		return "starting"
	}
}

// health answers /healthz: 200 while tasks are taken, 503 before and after.
type health struct{ state atomic.Int32 }

// set moves on to a state. A worker that drains never becomes ready again.
func (h *health) set(s healthState) {
	for {
		was := h.state.Load()
		if int32(s) <= was || h.state.CompareAndSwap(was, int32(s)) {
			return
		}
	}
}

// ServeHTTP implements http.Handler.
func (h *health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	state := healthState(h.state.Load())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if state != healthReady {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	io.WriteString(w, state.String()+"\n") // the asker may be gone
}
