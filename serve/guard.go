package serve

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"superstep.dev/internal/hosts"
)

// exposed are the response headers that pages may read.
const exposed = "x-pagination-total, x-pagination-next, content-location"

// door lets requests in.
type door struct{ *Server }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { door{s}.take(w, r) }

// take lets in what comes to this server, from no page that may not use it.
func (s door) take(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if !hosts.Allowed(r.Host, s.cfg.Hosts) {
		answer(w, http.StatusMisdirectedRequest, refusal{"this server is not to be reached under that Host: name it with --host-name"})
		return
	}
	origin := r.Header.Get("Origin")
	if !s.anyOrigin() {
		h.Add("Vary", "Origin")
	}
	if !s.originAllowed(r) {
		answer(w, http.StatusForbidden, refusal{"pages of that origin may not use this server: name it with --origin"})
		return
	}
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", "*")
		if !s.anyOrigin() {
			h.Set("Access-Control-Allow-Origin", origin)
		}
		h.Set("Access-Control-Expose-Headers", exposed)
	}
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		s.preflight(w, r)
		return
	}
	if allowed := s.otherMethods(r); len(allowed) > 0 {
		h.Set("Allow", strings.Join(allowed, ", "))
		answer(w, http.StatusMethodNotAllowed, refusal{"that path takes another method"})
		return
	}
	s.mux.ServeHTTP(w, traced(r))
}

// traced is the request in the span of who sent it, so that runs that it starts are told of there. A handler around this one may
// have a span of its own.
func traced(r *http.Request) *http.Request {
	if trace.SpanContextFromContext(r.Context()).IsValid() {
		return r
	}
	return r.WithContext(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
}

func (s door) preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" { // a page of the internet asks for this machine: its origin may
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	w.WriteHeader(http.StatusOK)
}

// otherMethods are the methods that the path of a request takes, nil where it takes the request's, or none.
func (s door) otherMethods(r *http.Request) (allowed []string) {
	if _, pattern := s.mux.Handler(r); pattern != "/" {
		return nil
	}
	for _, m := range []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := s.mux.Handler(other); pattern != "/" {
			allowed = append(allowed, m)
		}
	}
	return allowed
}

// anyOrigin reports whether pages of any origin may use the server.
func (s door) anyOrigin() bool {
	return len(s.cfg.Origins) == 0 && s.cfg.Authenticate == nil || slices.Contains(s.cfg.Origins, "*")
}

// crossOrigin knows requests that a browser sends for a page of another origin, also without saying of which.
var crossOrigin = http.NewCrossOriginProtection()

// originAllowed reports whether a request is of no page, of one of the server's own, or of one that may use it.
func (s door) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if s.anyOrigin() || origin != "" && slices.ContainsFunc(s.cfg.Origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
		return true
	}
	if u, err := url.Parse(origin); origin != "" && (err != nil || !strings.EqualFold(u.Host, r.Host)) {
		return false
	}
	return crossOrigin.Check(r) == nil
}

// Limits bound what callers may ask. A caller is who was authenticated; where nobody is, it is an address. A request beyond a limit is
// answered with 429 or, when the server is full, with 503; clients of the protocol try again.
type Limits struct {
	// Rate is how many requests a second a caller may send, and Burst how many at once beyond that. 0 is 100 and 400 for callers that are
	// authenticated, and no limit for others; a Rate below 0 is none.
	Rate  float64
	Burst int
	// Open is how many requests of a caller may be open at once, streams above all: 0 is 1,000 for callers that are authenticated, and
	// 4,000 for others. OpenAll is how many of all callers, 0 for 5,000.
	Open, OpenAll int
	// Body is how long the body of a request may take to come, 0 for 30 seconds.
	Body time.Duration
	// Bodies is how many bytes may have come, of all requests whose bodies are not whole yet: 0 for 256 MiB. Those that would make it more
	// are answered with 503.
	Bodies int64
}

func (l Limits) or(authenticated bool) Limits {
	if authenticated {
		l.Rate, l.Burst, l.Open = cmp.Or(l.Rate, 100), cmp.Or(l.Burst, 400), cmp.Or(l.Open, 1000)
	}
	l.Open, l.OpenAll, l.Body = cmp.Or(l.Open, 4000), cmp.Or(l.OpenAll, 5000), cmp.Or(l.Body, 30*time.Second)
	l.Bodies = cmp.Or(l.Bodies, 256<<20)
	return l
}

// callers counts what callers ask. It forgets who asks nothing for a while, and of too many the one who asked least lately.
type callers struct {
	limits Limits
	known  *ttlcache.Cache[string, *caller]
	open   atomic.Int64
	bodies *semaphore.Weighted // by the bytes that have come of them
}

type caller struct {
	rate *rate.Limiter
	open atomic.Int64
}

const (
	mostCallers  = 50_000
	callerMemory = 10 * time.Minute
)

func newCallers(l Limits) *callers {
	return &callers{limits: l, bodies: semaphore.NewWeighted(l.Bodies), known: ttlcache.New(ttlcache.WithTTL[string, *caller](callerMemory), ttlcache.WithCapacity[string, *caller](mostCallers))}
}

// enter lets a request in while the server is not full. leave must be called once, when there is no error.
func (c *callers) enter() (leave func(), err error) {
	if c.open.Add(1) > int64(c.limits.OpenAll) {
		c.open.Add(-1)
		return nil, refuse(http.StatusServiceUnavailable, "%d requests are open: try again", c.limits.OpenAll)
	}
	return func() { c.open.Add(-1) }, nil
}

// of lets a request of a caller through. leave must be called once, when there is no error.
func (c *callers) of(name string) (leave func(), err error) {
	item, _ := c.known.GetOrSetFunc(name, func() *caller {
		limit := rate.Inf
		if c.limits.Rate > 0 {
			limit = rate.Limit(c.limits.Rate)
		}
		return &caller{rate: rate.NewLimiter(limit, max(1, c.limits.Burst))}
	})
	one := item.Value()
	if !one.rate.Allow() {
		return nil, refuse(http.StatusTooManyRequests, "more than %v requests a second: slow down", c.limits.Rate)
	}
	if one.open.Add(1) > int64(c.limits.Open) {
		one.open.Add(-1)
		return nil, refuse(http.StatusTooManyRequests, "%d of your requests are open: close some", c.limits.Open)
	}
	return func() { one.open.Add(-1) }, nil
}

// remote is the address that a request comes from.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
