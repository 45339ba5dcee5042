package endpoint

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"

	"superstep.dev/internal/hosts"
)

const (
	// MaxBody bounds a request, in bytes.
	MaxBody = 32 << 20
	// together is how many requests are answered at once: each may take as much memory as MaxBody says, several times.
	together = 8
	// minToken is how many bytes a token has at least.
	minToken = 16
	// within bounds a request, from its first byte to the last one of the reply.
	within = 30 * time.Second
)

// Config is who may ask a [Handler].
type Config struct {
	// Token is what requests carry as "Authorization: Bearer TOKEN", at least 16 bytes. "" lets everybody ask who reaches the listener.
	Token string
	// Origins are the web pages that may ask, like https://temporal.example.com. A request of another page is refused, whatever it carries.
	Origins []string
	// Hosts are the names, without ports, under which the endpoint is asked, beside those of this machine's loopback. A request
	// to another name is refused: a page that has its own name lead here cannot ask.
	Hosts []string
}

func (c Config) check() error {
	if c.Token != "" && len(c.Token) < minToken || strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the token is not at least 16 printable characters without spaces")
	}
	for _, origin := range c.Origins {
		if u, err := url.Parse(origin); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return errors.New("an origin is not of the form https://HOST or http://HOST:PORT")
		}
	}
	return nil
}

// Handler returns what answers POST /encode and POST /decode as Temporal's remote codecs do. Requests are bounded in size and number,
// and checked before anything of them is read. Replies tell of keys by their ids alone.
//
// Errors: a Config that cannot be meant.
func Handler(codec converter.PayloadCodec, c Config) (http.Handler, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	h := &handler{Config: c, codec: converter.NewPayloadCodecHTTPHandler(codec), turns: make(chan struct{}, together)}
	h.token = sha256.Sum256([]byte(c.Token))
	return h, nil
}

// Server returns a server with the bounds in time that the endpoint wants.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: within, WriteTimeout: 2 * within, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10}
}

type handler struct {
	Config
	codec http.Handler
	token [sha256.Size]byte
	turns chan struct{}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Add("Vary", "Origin")
	if !hosts.Allowed(r.Host, h.Hosts) {
		refuse(w, http.StatusMisdirectedRequest, "the endpoint is not asked under this name")
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !slices.Contains(h.Origins, origin) {
			refuse(w, http.StatusForbidden, "pages of this origin may not ask")
			return
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Allow-Credentials", "true")
	}
	if r.URL.Path != "/encode" && r.URL.Path != "/decode" {
		refuse(w, http.StatusNotFound, "there are /encode and /decode")
		return
	}
	switch r.Method {
	case http.MethodOptions:
		w.Header().Set("Access-Control-Allow-Methods", http.MethodPost)
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		h.post(w, r)
	default:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "only POST")
	}
}

func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	if !h.proven(r.Header.Get("Authorization")) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "the request has no token, or another one")
		return
	}
	if r.ContentLength > MaxBody {
		refuse(w, http.StatusRequestEntityTooLarge, "the request is too large")
		return
	}
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "too many requests at once")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	h.codec.ServeHTTP(w, r)
}

// proven compares in a time that tells nothing of the token.
func (h *handler) proven(authorization string) bool {
	if h.Token == "" {
		return true
	}
	scheme, given, _ := strings.Cut(authorization, " ")
	sum := sha256.Sum256([]byte(given))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], h.token[:]) == 1
}

// Loopback reports whether a name or an address, without a port, is this machine's own.
func Loopback(host string) bool {
	return hosts.Loopback(host)
}

func refuse(w http.ResponseWriter, status int, why string) { http.Error(w, why, status) }
