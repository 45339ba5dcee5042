package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"superstep.dev/serve/access"
	"superstep.dev/thread"
)

// callerNamed takes the header Who for what it says.
func callerNamed(r *http.Request) (access.Identity, error) {
	switch who := r.Header.Get("Who"); who {
	case "":
		return access.Identity{}, access.ErrNoCredential
	case "forger":
		return access.Identity{}, fmt.Errorf("%w: a forged seal", access.ErrUnauthenticated)
	case "later":
		return access.Identity{}, errors.New("the directory s3cret is away")
	default:
		return access.Identity{Name: who}, nil
	}
}

// with adds paths to a server that asks nothing of Temporal.
func (s *Server) with(pattern string, c contract, do func(http.ResponseWriter, *http.Request) error) *Server {
	s.mux.HandleFunc(pattern, s.handling(c, do))
	return s
}

func fine(w http.ResponseWriter, r *http.Request) error {
	answer(w, http.StatusOK, by(r.Context()))
	return nil
}

// asked is a request to a handler, and its answer.
func request(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost:2024"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWhoAsks(t *testing.T) {
	var log bytes.Buffer
	s := bare(Config{Authenticate: callerNamed}).with("GET /mine", contract{does: on(access.Threads, access.Read)}, fine)
	s.log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "m"}), zapcore.AddSync(&log), zap.DebugLevel)).Sugar()
	for who, status := range map[string]int{"": 401, "forger": 401, "later": 503, "ann": 200, strings.Repeat("x", 300): 401} {
		w := request(s, "GET", "/mine", "Who", who, "X-Api-Key", "hunter2")
		require.Equal(t, status, w.Code, who)
		require.NotContains(t, w.Body.String(), "seal")
		require.NotContains(t, w.Body.String(), "s3cret")
		if status == 401 {
			require.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"))
		}
	}
	require.Equal(t, "\"ann\"\n", request(s, "GET", "/mine", "Who", "ann").Body.String())
	require.NotContains(t, log.String(), "hunter2")
	require.Contains(t, log.String(), "seal", "operators are told why")
	for _, open := range []string{"/ok", "/info", "/metrics", "/metrics?format=json", "/docs", "/openapi.json"} {
		require.Equal(t, 200, request(s, "GET", open).Code, open)
	}
	for _, r := range s.routes() {
		if !contracts[r.pattern()].open {
			w := request(s, r.method, inPath.ReplaceAllString(r.path, "00000000-0000-0000-0000-000000000000"))
			require.Equal(t, 401, w.Code, r.pattern())
		}
	}
	// What nobody has said who may do is done by nobody.
	require.Equal(t, 403, request(s.with("GET /new", contract{}, fine), "GET", "/new", "Who", "ann").Code)
	require.Equal(t, 200, request(bare(Config{}).with("GET /new", contract{}, fine), "GET", "/new").Code)
}

func TestConfigOfAccess(t *testing.T) {
	_, err := Handler(nil, Config{})
	require.ErrorIs(t, err, thread.ErrBadInput)
}

// Pages of other origins get nothing where callers are asked who they are, unless they are named.
func TestOrigins(t *testing.T) {
	open, closed := bare(Config{}), bare(Config{Authenticate: callerNamed})
	named := bare(Config{Authenticate: callerNamed, Origins: []string{"https://chat.example"}})
	some, all := bare(Config{Origins: []string{"https://chat.example"}}), bare(Config{Authenticate: callerNamed, Origins: []string{"*"}})
	for _, s := range []*Server{open, closed, named, some, all} {
		s.with("POST /do", contract{open: true}, fine)
	}
	for _, c := range []struct {
		s       *Server
		headers []string
		status  int
		allowed string
	}{
		{open, []string{"Origin", "https://evil.example"}, 200, "*"},
		{open, nil, 200, ""},
		{closed, nil, 200, ""},
		{closed, []string{"Origin", "https://evil.example"}, 403, ""},
		{closed, []string{"Origin", "null"}, 403, ""},
		{closed, []string{"Origin", "http://localhost:2024"}, 200, "http://localhost:2024"},
		{closed, []string{"Origin", "http://localhost:3000"}, 403, ""},
		{closed, []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		{closed, []string{"Sec-Fetch-Site", "same-site"}, 403, ""},
		{closed, []string{"Sec-Fetch-Site", "none"}, 200, ""},
		{named, []string{"Origin", "https://chat.example", "Sec-Fetch-Site", "cross-site"}, 200, "https://chat.example"},
		{named, []string{"Origin", "https://chat.example.evil"}, 403, ""},
		{some, []string{"Origin", "https://chat.example"}, 200, "https://chat.example"},
		{some, []string{"Origin", "https://evil.example"}, 403, ""},
		{all, []string{"Origin", "https://evil.example"}, 200, "*"},
		{open, []string{"Host", "evil.example"}, 421, ""},
		{closed, []string{"Host", "evil.example:2024"}, 421, ""},
		{closed, []string{"Host", "[::1]:2024"}, 200, ""},
	} {
		w := request(c.s, "POST", "/do", c.headers...)
		require.Equal(t, c.status, w.Code, "%v", c.headers)
		require.Equal(t, c.allowed, w.Header().Get("Access-Control-Allow-Origin"), "%v", c.headers)
		require.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
	// A page that may ask may ask for leave first, without saying who it is.
	w := request(named, "OPTIONS", "/threads", "Origin", "https://chat.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-api-key")
	require.Equal(t, 200, w.Code)
	require.Equal(t, "x-api-key", w.Header().Get("Access-Control-Allow-Headers"))
	require.Equal(t, "Origin", w.Header().Get("Vary"))
	require.Equal(t, 403, request(named, "OPTIONS", "/threads", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST").Code)
}

func TestLimits(t *testing.T) {
	s := bare(Config{Authenticate: callerNamed, Limits: Limits{Rate: 0.001, Burst: 3}}).with("GET /mine", contract{does: on(access.Threads, access.Read)}, fine)
	for range 3 {
		require.Equal(t, 200, request(s, "GET", "/mine", "Who", "ann").Code)
	}
	w := request(s, "GET", "/mine", "Who", "ann")
	require.Equal(t, 429, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, 200, request(s, "GET", "/mine", "Who", "bob").Code, "others are not slowed down")
	require.Equal(t, 200, request(s, "GET", "/ok").Code)

	hold, held := make(chan struct{}), make(chan struct{}, 10)
	s = bare(Config{Authenticate: callerNamed, Limits: Limits{Open: 2, OpenAll: 3}}).with("GET /wait", contract{does: on(access.Threads, access.Read)},
		func(w http.ResponseWriter, r *http.Request) error {
			held <- struct{}{}
			<-hold
			return fine(w, r)
		})
	var wait sync.WaitGroup
	ask := func(who string) {
		wait.Go(func() { require.Equal(t, 200, request(s, "GET", "/wait", "Who", who).Code) })
		<-held
	}
	ask("ann")
	ask("ann")
	require.Equal(t, 429, request(s, "GET", "/wait", "Who", "ann").Code)
	ask("bob")
	require.Equal(t, 503, request(s, "GET", "/wait", "Who", "carl").Code, "the server is full")
	require.Equal(t, 200, request(s, "GET", "/ok").Code)
	close(hold)
	wait.Wait()
	require.Equal(t, 200, request(s, "GET", "/wait", "Who", "ann").Code, "what has ended counts no more")
	require.Zero(t, s.callers.open.Load())
}

// A body that comes slowly is given up, and a long answer is not cut off by the time that its request had.
func TestSlowBodies(t *testing.T) {
	const within = time.Second
	s := bare(Config{Limits: Limits{Body: within}}).with("POST /slow", contract{body: of[object]()}, func(w http.ResponseWriter, r *http.Request) error {
		var body object
		if err := read(w, r, &body); err != nil {
			return err
		}
		out := newSSE(w)
		defer out.close()
		for range 4 {
			select {
			case <-time.After(within / 2):
			case <-r.Context().Done():
				return r.Context().Err()
			}
			if err := out.send("tick", 1, ""); err != nil {
				return err
			}
		}
		return nil
	})
	server := httptest.NewServer(s)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	began := time.Now()
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "HTTP/1.1 408 "), "%s", text)
	require.Less(t, time.Since(began), time.Minute)

	resp, err := http.Post(server.URL+"/slow", "text/plain", strings.NewReader("{}"))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(text), "event: tick"))
}

// Bodies that come slowly fill no memory: what has come of all of them is bounded, and room again when they have gone.
func TestManyLargeBodies(t *testing.T) {
	const each = 1 << 20
	s := bare(Config{Limits: Limits{Bodies: 3 * each}}).with("POST /large", contract{body: of[object]()}, func(w http.ResponseWriter, r *http.Request) error {
		var body object
		return read(w, r, &body)
	})
	server := httptest.NewServer(s)
	defer server.Close()
	half := func() (net.Conn, error) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "POST /large HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{%s", 2*each, strings.Repeat(" ", each))
		return conn, err
	}
	var held []net.Conn
	for range 2 {
		conn, err := half()
		require.NoError(t, err)
		held = append(held, conn)
	}
	taken := func(bytes int64) func() bool {
		return func() bool {
			if !s.callers.bodies.TryAcquire(3*each - bytes) {
				return false
			}
			s.callers.bodies.Release(3*each - bytes)
			return true
		}
	}
	require.Eventually(t, func() bool { return !taken(2 * each)() }, time.Minute, time.Millisecond, "both have come")
	post := func(bytes int) int {
		resp, err := http.Post(server.URL+"/large", "text/plain", strings.NewReader("{"+strings.Repeat(" ", bytes)+"}"))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, 503, post(each+each/2))
	require.Equal(t, 200, post(each/2))
	for _, conn := range held {
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, taken(0), time.Minute, time.Millisecond, "they have gone")
	require.Equal(t, 200, post(each+each/2))
}

// The stream of a credential that is good no more breaks off, as that of a server that is killed, and what has not begun is refused.
func TestCredentialsThatExpire(t *testing.T) {
	var mu sync.Mutex
	good := true
	expires := time.Now().Add(700 * time.Millisecond)
	who := func(r *http.Request) (access.Identity, error) {
		mu.Lock()
		defer mu.Unlock()
		if !good || r.Header.Get("Who") == "" {
			return access.Identity{}, access.ErrUnauthenticated
		}
		return access.Identity{Name: r.Header.Get("Who"), Expires: expires}, nil
	}
	causes := make(chan bool, 2)
	s := bare(Config{Authenticate: who}).with("GET /stream", contract{does: on(access.Threads, access.Read)}, func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.RawQuery == "" {
			defer newSSE(w).close()
		}
		<-r.Context().Done()
		causes <- gone(r.Context())
		return r.Context().Err()
	})
	server := httptest.NewServer(s)
	defer server.Close()
	ask := func(query string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/stream"+query, nil)
		require.NoError(t, err)
		req.Header.Set("Who", "ann")
		return http.DefaultClient.Do(req)
	}
	resp, err := ask("")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a stream that ended well would be taken for the run's end")
	require.False(t, time.Now().Before(expires))
	require.False(t, <-causes, "the caller has not gone: nothing is cancelled")

	mu.Lock()
	expires = time.Now().Add(300 * time.Millisecond)
	mu.Unlock()
	refused, err := ask("?late")
	require.NoError(t, err)
	defer refused.Body.Close()
	require.Equal(t, 401, refused.StatusCode)
	require.False(t, <-causes)
}

// What a hook refuses is 403 with its reason; what it does not grant is not there.
func TestGrantsOfARequest(t *testing.T) {
	has := access.Metadata{"team": json.RawMessage(`"red"`)}
	authorize := func(_ context.Context, who access.Identity, do access.Action, r access.Resource) (access.Grant, error) {
		if who.Name == "ann" && do == access.Delete {
			return access.Grant{}, fmt.Errorf("%w: nobody deletes", access.ErrForbidden)
		}
		return access.Grant{Filter: map[string]any{"team": who.Name}}, nil
	}
	does := map[access.Kind]access.Action{access.Threads: access.Update}
	in := func(who string) context.Context {
		return context.WithValue(t.Context(), visitKey{}, &visit{access.Identity{Name: who}, authorize, does})
	}
	thing := access.Resource{Kind: access.Threads, ID: "x", Metadata: has}
	_, err := mayFind(t.Context(), thing)
	require.NoError(t, err, "nobody was asked")
	_, err = mayFind(in("red"), thing)
	require.NoError(t, err)
	_, err = mayFind(in("blue"), thing)
	require.Equal(t, 404, faultOf(err).status)
	_, err = mayFind(as(in("ann"), access.Threads, access.Delete), thing)
	require.Equal(t, 403, faultOf(err).status)
	require.Equal(t, access.Update, does[access.Threads], "the request itself is as it was")
	own := access.Resource{Kind: access.Assistants, ID: "y", System: true}
	_, err = mayFind(in("blue"), own)
	require.NoError(t, err, "a graph's own assistant is read by everybody")
	_, err = mayFind(as(in("blue"), access.Assistants, access.Update), own)
	require.Equal(t, 403, faultOf(err).status)
}

// Webhooks reach no address that is not one of the internet's, however it is written: clouds keep credentials behind some of them.
func TestPublicAddresses(t *testing.T) {
	for _, one := range []string{"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "192.0.0.192", "0.0.0.0", "0.1.2.3",
		"198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fe80::1%eth0",
		"2001:db8::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:1::1"} {
		require.False(t, public(netip.MustParseAddr(one)), one)
	}
	for _, one := range []string{"1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.1", "::ffff:1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001::1"} {
		require.True(t, public(netip.MustParseAddr(one)), one)
	}
}
