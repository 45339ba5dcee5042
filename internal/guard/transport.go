package guard

import (
	"context"
	"crypto/tls"
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

// ErrOutsideCall says that a request which may change something went through a [GuardedTransport] with a context that is
// not the one given to Do, Lookup or Compensate, nor made of it. Nothing was sent.
var ErrOutsideCall = errors.New("superstep: the request's context is not of an effect's call: pass on the context that Do " +
	"was given, and use another client outside of effects")

// ErrSentBefore says that net/http was about to send a request, which may change something, once more on another
// connection. How often a write is sent is for Do to decide.
var ErrSentBefore = errors.New("superstep: the request was sent before and is not sent again")

// Check returns nil while something may be sent for the call that ctx belongs to.
func Check(ctx context.Context) error {
	c, ok := taskrun.CallFrom(ctx)
	if !ok {
		return ErrOutsideCall
	}
	return overAsCall(c.Check())
}

// overAsCall says of a call whose task was lost that its time is over, too.
func overAsCall(err error) error {
	if errors.Is(err, graphadapter.ErrFenced) {
		return fmt.Errorf("%w: %w", taskrun.ErrCallOver, err)
	}
	return err
}

// Transport sends requests for calls whose time is not over.
func Transport(base http.RoundTripper) http.RoundTripper {
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

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// guardConnections makes a transport's connections guarded ones, each of which carries one request at a time.
func guardConnections(t *http.Transport) *http.Transport {
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	if t.TLSClientConfig != nil { // a transport that was used offers HTTP/2 by itself
		t.TLSClientConfig.NextProtos = nil
	}
	dial := dialer(t.DialContext)
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	t.DialContext = dial.guarded
	if secured := dialer(t.DialTLSContext); secured != nil {
		t.DialTLSContext = secured.guarded
	}
	return t
}

func (d dialer) guarded(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &guardedConn{Conn: conn}, nil
}

// guardedConn writes for a request only while that may be sent.
type guardedConn struct {
	net.Conn
	sending atomic.Pointer[sending] // the newest; nil before the first, while TLS is set up
}

// pieceBytes is how much is written between two questions.
const pieceBytes = 16 << 10

// Write implements net.Conn.
func (c *guardedConn) Write(p []byte) (n int, err error) {
	s := c.sending.Load()
	if s == nil {
		return c.Conn.Write(p)
	}
	for n < len(p) {
		if err := s.check(); err != nil {
			return n, err
		}
		wrote, err := c.Conn.Write(p[n:min(len(p), n+pieceBytes)])
		if wrote > 0 {
			s.wrote.Store(true)
		}
		if n += wrote; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close implements net.Conn. What the kernel has not sent of a request without an answer is dropped: it would go on
// sending that for minutes.
func (c *guardedConn) Close() error {
	if s := c.sending.Load(); s != nil && s.changes && !s.answered.Load() {
		if tcp, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
			_ = tcp.SetLinger(0)
		}
	}
	return c.Conn.Close()
}
