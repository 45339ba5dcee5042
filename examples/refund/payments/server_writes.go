package payments

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// KeyHeader carries the idempotency key of a write: 1 to 255 visible ASCII
// characters, chosen by the caller and the same for every repeat.
const KeyHeader = "Idempotency-Key"

const maxKeyLength = 255

// errStopping answers the writes that a stop finds before their commit.
var errStopping = errors.New("the service is stopping; nothing was committed")

// errFault answers the writes that Fail5xx refuses.
var errFault = errors.New("the service is told to fail; nothing was committed")

func (s *Server) postRefund(w http.ResponseWriter, r *http.Request) {
	var body Refund
	perform(s, w, r, PathRefunds, &body, func(ctx context.Context, key string) (committed[Receipt], error) {
		return s.store.refund(ctx, key, body)
	})
}

// postReversal takes a refund back. The path says which; a body may be absent
// or an empty object.
func (s *Server) postReversal(w http.ResponseWriter, r *http.Request) {
	var body struct{}
	perform(s, w, r, PathReversals, &body, func(ctx context.Context, key string) (committed[Receipt], error) {
		return s.store.reverse(ctx, key, r.PathValue("id"))
	})
}

func (s *Server) postNotification(w http.ResponseWriter, r *http.Request) {
	var body Notification
	perform(s, w, r, PathNotifications, &body, func(ctx context.Context, key string) (committed[Delivery], error) {
		return s.store.notify(ctx, key, body)
	})
}

// perform takes one keyed write from its arrival to its answer, through the
// faults that its path is told to have.
func perform[T any](s *Server, w http.ResponseWriter, r *http.Request, path string, body any, commit func(context.Context, string) (committed[T], error)) {
	// The body is read to its end before anything waits: only then does the
	// server notice a caller that goes away.
	malformed := decode(w, r, body)
	key, err := s.admit(r, path)
	if err == nil {
		err = malformed
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	ctx, cancel := storeContext(r)
	defer cancel()
	out, err := commit(ctx, key)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.log.Info("write", "path", r.URL.Path, "key", key, "committed", out.created, "receipt", out.value)
	s.strike(r, key, out.fault)
	s.reply(w, statusOf(out.created), out.value)
}

// admit counts a write, lets the faults of its arrival act, and returns its
// key. The key is judged last: a service in trouble fails well-formed and
// malformed requests alike.
func (s *Server) admit(r *http.Request, path string) (string, error) {
	key := r.Header.Get(KeyHeader)
	wrong := checkKey(key)
	counted := key
	if wrong != nil {
		counted = "" // received, under no key
	}
	ctx, cancel := storeContext(r)
	defer cancel()
	before, err := s.store.arrive(ctx, path, counted)
	if err != nil {
		return "", err
	}
	if err := s.delay(before.slow); err != nil {
		return "", err
	}
	if before.fail {
		s.log.Warn("fault: answering 503", "path", r.URL.Path, "key", key)
		return "", errFault
	}
	return key, wrong
}

// delay waits, deliberately deaf to the caller: a write that was received is
// carried out. Stopping the service ends it.
func (s *Server) delay(d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.stopped:
		return errStopping
	}
}

// strike lets a fault act after the commit. It returns only when there is none.
func (s *Server) strike(r *http.Request, key string, fault faultAfter) {
	switch fault {
	case faultNone:
		return
	case faultDie:
		s.log.Warn("fault: committed, dying before the reply", "path", r.URL.Path, "key", key)
		s.exit(FaultExitCode)
	case faultHang:
		s.log.Warn("fault: committed, never replying", "path", r.URL.Path, "key", key)
		select {
		case <-r.Context().Done():
		case <-s.stopped:
		}
	}
	// Drop the connection: any status here would be a reply.
	panic(http.ErrAbortHandler)
}

// checkKey refuses a key that is absent, or that could not be sent back in a
// header or written to a log as it is.
func checkKey(key string) error {
	if key == "" {
		return refuse(statusMalformed, CodeKeyMissing, "the %s is missing", KeyHeader)
	}
	if len(key) > maxKeyLength {
		return refuse(statusMalformed, CodeKeyInvalid, "the %s is longer than %d characters", KeyHeader, maxKeyLength)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return refuse(statusMalformed, CodeKeyInvalid, "the %s holds a character that is not visible ASCII", KeyHeader)
		}
	}
	return nil
}
