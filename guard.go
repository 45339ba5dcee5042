package superstep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/taskrun"
)

// ErrCallOver says that the time of an effect's call is over, or that its task may be another worker's by now: what was to
// be sent was not. Return it: the next execution looks up what happened. It is a context.DeadlineExceeded.
var ErrCallOver = taskrun.ErrCallOver

// ErrOutsideCall says that a request which may change something went through a [GuardedTransport] with a context that is
// not the one given to Do, Lookup or Compensate, nor made of it. Nothing was sent.
var ErrOutsideCall = errors.New("superstep: the request's context is not of an effect's call: pass on the context that Do " +
	"was given, and use another client outside of effects")

// ErrSentBefore says that net/http was about to send a request, which may change something, once more on another
// connection. How often a write is sent is for Do to decide.
var ErrSentBefore = errors.New("superstep: the request was sent before and is not sent again")

// CheckCall returns nil while something may be sent for the call that ctx belongs to: Do's, Lookup's or Compensate's. Ask it
// right before the bytes leave, where [GuardedTransport] cannot: in another protocol than HTTP, or behind a connection that
// many calls share. Otherwise the error is [ErrCallOver], ErrOutsideCall, or why the call ended. It asks the clocks, not the
// timers, which are late when the process or the machine stood still.
func CheckCall(ctx context.Context) error {
	c, ok := taskrun.CallFrom(ctx)
	if !ok {
		return ErrOutsideCall
	}
	return overAsCall(c.Check())
}

// CallDeadline returns when the call that ctx belongs to is over at the latest, and false when it belongs to none. Hand it to
// the target, if that can refuse what arrives after it: then nothing that a network held back is acted upon. The deadline is
// one of this machine's clock.
func CallDeadline(ctx context.Context) (time.Time, bool) {
	c, ok := taskrun.CallFrom(ctx)
	if !ok {
		return time.Time{}, false
	}
	return c.Deadline(), true
}

// overAsCall says of a call whose task was lost that its time is over, too.
func overAsCall(err error) error {
	if errors.Is(err, graphadapter.ErrFenced) {
		return fmt.Errorf("%w: %w", ErrCallOver, err)
	}
	return err
}

// GuardedTransport returns a transport for the requests of effects: it sends nothing for a call whose time is over, or whose
// task may be another worker's by now, however late timers and contexts are because the process stood still. The call is
// asked for (see [CheckCall]) when a request begins, and whenever a piece of its body is read.
//
// Of an [http.Transport], or of nil for a copy of [http.DefaultTransport], the connections are guarded as well: the call is
// asked for right before each write to the network, and a connection whose call has no answer yet is torn down with what
// the kernel has not sent. It is then HTTP/1.1 only, since over HTTP/2 many calls share one connection. What remains is the
// moment between that question and the system call.
//
// A request that may change something (another method than GET, HEAD, OPTIONS or TRACE) needs the context of a call, else
// [ErrOutsideCall]; and it is sent once, also with a header that lets net/http send it again ([ErrSentBefore]).
func GuardedTransport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	if t, ok := base.(*http.Transport); ok {
		base = guardConnections(t.Clone())
	}
	return &guardedTransport{base}
}

type guardedTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	s := &sending{changes: changes(req.Method)}
	s.call, _ = taskrun.CallFrom(req.Context())
	if err := s.check(); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper has to
		}
		return nil, err
	}
	out := req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: s.got, GotFirstResponseByte: func() { s.answered.Store(true) },
	}))
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = &guardedBody{req.Body, s}
		if again := req.GetBody; again != nil {
			out.GetBody = func() (io.ReadCloser, error) {
				body, err := again()
				return &guardedBody{body, s}, err
			}
		}
	}
	response, err := t.base.RoundTrip(out)
	if refused := s.refused.Load(); err != nil && refused != nil {
		return nil, *refused // net/http says of it that the connection is broken
	}
	return response, err
}

// changes reports whether a request of that method may change something.
func changes(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}

// sending is one request on its way.
type sending struct {
	call     *taskrun.Call // nil for a request of none
	changes  bool
	wrote    atomic.Bool // something of it has left
	answered atomic.Bool
	refused  atomic.Pointer[error]
}

// check returns why nothing may be sent of the request any more.
func (s *sending) check() error {
	if why := s.refused.Load(); why != nil {
		return *why
	}
	switch {
	case s.call != nil:
		if err := overAsCall(s.call.Check()); err != nil {
			return s.refuse(err)
		}
	case s.changes:
		return s.refuse(ErrOutsideCall)
	}
	return nil
}

func (s *sending) refuse(why error) error {
	s.refused.CompareAndSwap(nil, &why)
	return why
}

// got binds the request to the connection that it was given.
func (s *sending) got(info httptrace.GotConnInfo) {
	if s.changes && s.wrote.Load() {
		_ = s.refuse(ErrSentBefore)
	}
	conn := info.Conn
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn()
	}
	guarded, ok := conn.(*guardedConn)
	if !ok {
		return
	}
	guarded.sending.Store(s)
	var deadline time.Time
	if s.call != nil {
		deadline = s.call.Deadline()
	}
	_ = guarded.SetWriteDeadline(deadline) // a connection that takes none is asked for at each write all the same
}

// guardedBody is asked for right before what it has is written.
type guardedBody struct {
	io.ReadCloser
	sending *sending
}

// Read implements io.Reader.
func (b *guardedBody) Read(p []byte) (int, error) {
	if err := b.sending.check(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}
