package guard

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
)

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
