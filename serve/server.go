package serve

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// Config says what a [Server] serves.
type Config struct {
	// Temporal is the client that the superstep.Client was made with.
	Temporal client.Client
	// TaskQueue is that of the workers with the graphs, "" for superstep.DefaultTaskQueue. What the servers themselves have to do is
	// on a queue of its own, which has ".serve" behind the name.
	TaskQueue string
	// Namespace and DataConverter are those of the Temporal client; "" and nil for Temporal's defaults.
	Namespace     string
	DataConverter converter.DataConverter
	// Hosts are the names under which the server may be reached, besides localhost and the addresses of loopback. A request with
	// another Host is refused: a page that has its name point to this machine gets nothing.
	Hosts []string
	// Origins are the origins of web pages that may use the server; none for any.
	Origins []string
	// WebhooksAnywhere lets webhooks reach private addresses and this machine.
	WebhooksAnywhere bool
	// Version is what /info says.
	Version string
	// Logger is told what goes wrong; nil for nobody.
	Logger *zap.Logger
}

// Server is a handler of the protocol. It works on the records of threads until it is closed.
type Server struct {
	client  *superstep.Client
	cfg     Config
	records *record.Records
	index   index
	mux     *http.ServeMux
	log     *zap.SugaredLogger

	mu    sync.Mutex
	specs map[string]specKept
}

type specKept struct {
	spec *pregel.Spec
	at   time.Time
}

// Handler returns a server over a client. Close it when it serves no more.
//
// Errors: thread.ErrBadInput without Config.Temporal; those of a Temporal worker that cannot begin.
func Handler(c *superstep.Client, cfg Config) (*Server, error) {
	if c == nil || cfg.Temporal == nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: "a server needs a Client, and the Temporal client that it was made with"}
	}
	cfg.TaskQueue, cfg.Namespace = cmp.Or(cfg.TaskQueue, superstep.DefaultTaskQueue), cmp.Or(cfg.Namespace, client.DefaultNamespace)
	s := &Server{client: c, cfg: cfg, mux: http.NewServeMux(), log: cmp.Or(cfg.Logger, zap.NewNop()).Sugar(), specs: map[string]specKept{}}
	s.records = record.New(cfg.Temporal, c, record.Config{Namespace: cfg.Namespace, TaskQueue: cfg.TaskQueue + ".serve",
		DataConverter: cfg.DataConverter, Webhooks: webhooks(cfg.WebhooksAnywhere), Shown: s.valuesOf})
	for _, r := range s.routes() {
		s.mux.HandleFunc(r.method+" "+r.path, s.handling(r.do))
	}
	s.mux.HandleFunc("/", s.handling(func(http.ResponseWriter, *http.Request) error {
		return refuse(http.StatusNotFound, "there is no such path")
	}))
	return s, s.records.Start()
}

// Close ends the work on records: other servers, or this one when it is started again, go on with it.
func (s *Server) Close() { s.records.Stop() }

// route is a path of the protocol.
type route struct {
	method, path, about string
	do                  func(http.ResponseWriter, *http.Request) error
}

// routes are all paths.
func (s *Server) routes() []route {
	return slices.Concat(s.metaRoutes(), s.assistantRoutes(), s.threadRoutes(), s.stateRoutes(), s.runRoutes(), s.streamRoutes())
}

// handling makes a handler of what does the work: an error becomes a refusal.
func (s *Server) handling(do func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := do(w, r)
		if err == nil || r.Context().Err() != nil {
			return
		}
		f := faultOf(err)
		if f.status == http.StatusInternalServerError {
			s.log.Errorw("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		answer(w, f.status, map[string]string{"detail": f.detail})
	}
}

// webhooks returns what posts to addresses that callers give: it follows no redirect, and unless anywhere reaches no address of a
// private network or of this machine.
func webhooks(anywhere bool) *http.Client {
	dial := &net.Dialer{Timeout: 5 * time.Second}
	if !anywhere {
		dial.Control = func(_, address string, _ syscall.RawConn) error {
			host, _, err := net.SplitHostPort(address)
			ip := net.ParseIP(host)
			if err != nil || ip == nil || ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
				return errors.New("webhooks do not go to private addresses")
			}
			return nil
		}
	}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: dial.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// specFor is how long a graph's Spec is remembered.
const specFor = 30 * time.Second

// spec returns a graph as the workers serve it.
func (s *Server) spec(ctx context.Context, graph string) (*pregel.Spec, error) {
	s.mu.Lock()
	kept, ok := s.specs[graph]
	s.mu.Unlock()
	if ok && time.Since(kept.at) < specFor {
		return kept.spec, nil
	}
	spec, err := s.client.GraphSpec(ctx, graph)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.specs[graph] = specKept{spec, time.Now()}
	return spec, nil
}

// valuesOf are a state's values as clients see them.
func (s *Server) valuesOf(ctx context.Context, state thread.StateView) any {
	if state.Graph == "" {
		return nil
	}
	spec, err := s.spec(ctx, state.Graph)
	if err != nil {
		return state.Values
	}
	return shown(outputOf(spec, state.Values), channelsOf(spec, nil))
}
