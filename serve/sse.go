package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"superstep.dev/thread"
)

// sse writes server-sent events. It is safe for concurrent use.
type sse struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	ctrl *http.ResponseController
	stop chan struct{}
	// due says that something was written and has not been sent.
	due chan struct{}
	// closed says that the request is over: from then on its response is not to be touched.
	closed bool
}

// errSent says that the client has gone.
var errSent = errors.New("the client does not read")

// writeTimeout is how long a client may take to read what was written to it.
const writeTimeout = 30 * time.Second

// newSSE begins a stream, which says now and then that it is there until it is closed.
func newSSE(w http.ResponseWriter) *sse {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &sse{w: w, ctrl: http.NewResponseController(w), stop: make(chan struct{}), due: make(chan struct{}, 1)}
	if s.ctrl.Flush() == nil { // clients wait for the headers before they do anything else
		go s.sends()
	}
	return s
}

// close ends the stream. What was written is sent with the end of the request.
func (s *sse) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.stop)
}

// sends sends what is written: an event that is alone at once, those that come meanwhile together.
func (s *sse) sends() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-tick.C:
			err = s.put([]byte(": heartbeat\n\n"))
		case <-s.due:
			err = s.flush()
		case <-s.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// send writes an event; without an id it has none.
func (s *sse) send(event string, data any, id string) error {
	text, is := data.(json.RawMessage)
	if !is || len(text) == 0 || bytes.ContainsAny(text, "\r\n") { // it is not one line yet
		var err error
		if text, err = json.Marshal(data); err != nil {
			return err
		}
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
	if s.closed {
		return errSent
	}
	if err := s.ctrl.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	select {
	case s.due <- struct{}{}:
	default:
	}
	return nil
}

func (s *sse) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.ctrl.Flush()
}

// rank is the place of an event among those of its run: how often a node had emitted before and something else followed, and the
// number since. A run that is read again gives the same numbers, and what a node emitted before its worker was lost, and did not
// emit again, moves only the numbers of what the node emits: what comes behind has another turn.
type rank struct{ turn, event int64 }

// eventBits bound the events of one turn; more go on as if it was another one.
const eventBits = 16

// behind reports whether an event comes after another one.
func (r rank) behind(other rank) bool {
	return r.turn > other.turn || r.turn == other.turn && r.event > other.event
}

// id is the rank as an event's id.
func (r rank) id() string { return itoa(int(r.turn)) + "-" + itoa(int(r.event)) }

// rankIn reads an id. What is none is before all events.
func rankIn(id string) rank {
	turn, event, _ := strings.Cut(id, "-")
	t, err := strconv.ParseInt(turn, 10, 64)
	e, also := strconv.ParseInt(event, 10, 64)
	if err != nil || also != nil || t < 0 || e < 0 {
		return rank{-1, 0}
	}
	return rank{t, e}
}

// number is the rank as one number, which grows.
func (r rank) number() int64 { return r.turn<<eventBits | r.event }

// ranks counts the events of a run. The zero value is before the first one.
type ranks struct {
	at rank
	// emits is the task whose emissions the last event was of, "" for none.
	emits string
}

// next is the rank of the next event, which is of a part; nil stands for one of none.
func (rs *ranks) next(p *thread.Part) rank {
	emits := ""
	if p != nil && (p.Mode == thread.StreamCustom || p.Mode == thread.StreamMessages || p.Mode == thread.StreamReset) {
		emits = "by " + p.Task
	}
	rs.at.event++
	if rs.emits != "" && rs.emits != emits || rs.at.event == 1<<eventBits {
		rs.at = rank{rs.at.turn + 1, 0}
	}
	rs.emits = emits
	return rs.at
}
