package effect_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// brief is the time of the calls here, and outlasting it is longer.
const (
	brief       = 50 * time.Millisecond
	outlasting  = 80 * time.Millisecond
	neverMind   = time.Minute
	idempotency = "Idempotency-Key"
)

// inDo runs send as the Do of an effect's call of that time, and returns what it returned. Its context keeps the call and
// never ends by itself, as that of a call does not which goes on at the moment when its process is thawed.
func inDo(t *testing.T, timeout time.Duration, send func(ctx context.Context) error) error {
	t.Helper()
	type state struct {
		Done superstep.Value[bool] `json:"done"`
	}
	var said error
	write := &superstep.Effect[string, string]{Name: "write", Target: superstep.TargetKeyed,
		Do: func(ctx context.Context, _, _ string) (string, error) {
			said = send(context.WithoutCancel(ctx))
			return "", superstep.Permanent(errors.New("enough"))
		}}
	g := superstep.NewStateGraph[state]("guard")
	g.AddEffect(write)
	g.AddNode("write", func(ctx context.Context, s state) (state, error) {
		_, err := write.Call(ctx, "p", superstep.WithCallTimeout(timeout))
		return s, err
	})
	g.AddEdge(superstep.Start, "write")
	_, err := g.MustCompile().Invoke(t.Context(), state{})
	require.ErrorContains(t, err, "enough")
	return said
}

func post(ctx context.Context, c *http.Client, url string, body io.Reader) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	req.Header.Set(idempotency, "k")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// counting is a service that counts the requests which came to it whole.
func counting(t *testing.T, secured bool) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var whole atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			whole.Add(1)
		}
	}))
	if secured {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server, &whole
}

// late is a body whose second piece comes when the call's time is over.
type lateBody struct{ pieces int }

func (b *lateBody) Read(p []byte) (int, error) {
	switch b.pieces++; b.pieces {
	case 1:
		return copy(p, "one "), nil
	case 2:
		time.Sleep(outlasting)
		return copy(p, "two"), nil
	}
	return 0, io.EOF
}

type through func(*http.Request) (*http.Response, error)

func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestNothingLeavesWhenACallIsOver: wherever on its way a request is when the time of its call is over, the service does not
// get it.
func TestNothingLeavesWhenACallIsOver(t *testing.T) {
	slowDial := func(c *http.Transport) {
		dial := c.DialContext
		c.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(outlasting)
			return dial(ctx, network, address)
		}
	}
	for _, secured := range []bool{false, true} {
		for _, c := range []struct {
			name   string
			dial   func(*http.Transport)
			body   func() io.Reader
			before time.Duration
			other  bool // the transport is none of net/http's
		}{
			{"before the request", nil, func() io.Reader { return strings.NewReader("all") }, outlasting, false},
			{"before the request, which has no body", nil, func() io.Reader { return nil }, outlasting, false},
			{"while it is connected", slowDial, func() io.Reader { return strings.NewReader("all") }, 0, false},
			{"while it is connected, without a body", slowDial, func() io.Reader { return nil }, 0, false},
			{"within the body", nil, func() io.Reader { return &lateBody{} }, 0, false},
			{"while another transport connects", slowDial, func() io.Reader { return strings.NewReader("all") }, 0, true},
			{"within the body, for another transport", nil, func() io.Reader { return &lateBody{} }, 0, true},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				server, whole := counting(t, secured)
				transport := server.Client().Transport.(*http.Transport).Clone()
				if transport.DialContext == nil {
					transport.DialContext = new(net.Dialer).DialContext
				}
				if c.dial != nil {
					c.dial(transport)
				}
				var base http.RoundTripper = transport
				if c.other {
					base = through(transport.RoundTrip)
				}
				client := &http.Client{Transport: superstep.GuardedTransport(base)}
				err := inDo(t, brief, func(ctx context.Context) error {
					time.Sleep(c.before)
					return post(ctx, client, server.URL, c.body())
				})
				require.ErrorIs(t, err, superstep.ErrCallOver)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				server.Close() // waits for what has come
				require.Zero(t, whole.Load())
			})
		}
	}
}

// TestGuardedCallsGoThrough, one after the other on one connection, each with a time of its own; and so do reads outside of
// calls, but no writes.
func TestGuardedCallsGoThrough(t *testing.T) {
	for _, secured := range []bool{false, true} {
		server, whole := counting(t, secured)
		var dialled atomic.Int64
		transport := server.Client().Transport.(*http.Transport).Clone()
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		client := &http.Client{Transport: superstep.GuardedTransport(transport)}
		var at time.Time // when the call's time is over
		send := func(ctx context.Context) error {
			var ok bool
			at, ok = superstep.CallDeadline(ctx)
			require.True(t, ok)
			require.LessOrEqual(t, time.Until(at), neverMind)
			require.NoError(t, superstep.CheckCall(ctx))
			return post(ctx, client, server.URL, strings.NewReader(strings.Repeat("x", 1<<20)))
		}
		require.NoError(t, inDo(t, 5*time.Second, send))
		<-time.After(time.Until(at)) // the first call's time is over, and its connection is used again
		require.NoError(t, inDo(t, neverMind, send))
		require.EqualValues(t, 2, whole.Load())
		require.EqualValues(t, 1, dialled.Load())

		resp, err := client.Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.ErrorIs(t, post(t.Context(), client, server.URL, nil), superstep.ErrOutsideCall)
		require.ErrorIs(t, superstep.CheckCall(t.Context()), superstep.ErrOutsideCall)
		_, ok := superstep.CallDeadline(t.Context())
		require.False(t, ok)
		require.EqualValues(t, 3, whole.Load())
	}
}

// TestAWriteIsSentOnce: net/http takes an Idempotency-Key as leave to send a request again when a kept connection breaks.
func TestAWriteIsSentOnce(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		var came atomic.Int64
		go func() { // answers the first request of a connection, takes the second and hangs up
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					in := bufio.NewReader(conn)
					for n := range 2 {
						req, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						_, _ = io.Copy(io.Discard, req.Body)
						if came.Add(1); n == 0 {
							_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
						}
					}
				}()
			}
		}()
		client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
		if guarded {
			client.Transport = superstep.GuardedTransport(client.Transport)
		}
		url := "http://" + listener.Addr().String()
		err = inDo(t, neverMind, func(ctx context.Context) error {
			require.NoError(t, post(ctx, client, url, strings.NewReader("first")))
			return post(ctx, client, url, strings.NewReader("second"))
		})
		if !guarded {
			require.NoError(t, err)
			require.EqualValues(t, 3, came.Load(), "net/http does not send it again: the guard is not needed for that any more")
			continue
		}
		require.ErrorIs(t, err, superstep.ErrSentBefore)
		require.EqualValues(t, 2, came.Load())
	}
}
