package serve

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
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
	if !s.hostAllowed(r.Host) {
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
	if _, pattern := s.mux.Handler(r); pattern == "/" && s.otherMethod(r) {
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
	w.WriteHeader(http.StatusOK)
}

// otherMethod reports whether the path is there for another method than the request's.
func (s door) otherMethod(r *http.Request) bool {
	return slices.ContainsFunc([]string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodPut}, func(m string) bool {
		other := r.Clone(r.Context())
		other.Method = m
		_, pattern := s.mux.Handler(other)
		return pattern != "/"
	})
}

// hostAllowed reports whether the server may be reached under a name.
func (s door) hostAllowed(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(s.cfg.Hosts, func(allowed string) bool { return strings.EqualFold(allowed, name) })
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
