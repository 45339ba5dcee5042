package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/serve/access"
	"superstep.dev/serve/assistant"
	"superstep.dev/serve/cron"
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
	// Origins are the origins of web pages that may use the server, "*" for any. None are any as long as nobody is asked who they are,
	// and only the server's own with Authenticate.
	Origins []string
	// Authenticate finds out who asks; nil lets everybody do everything who reaches the server.
	Authenticate access.Authenticate
	// Authorize says what they may do; nil is access.Own. It goes with Authenticate.
	Authorize access.Authorize
	// Limits bound what callers may ask.
	Limits Limits
	// WebhooksAnywhere lets webhooks reach private addresses and this machine.
	WebhooksAnywhere bool
	// Store is the graphs' long-term memory, that of the workers; nil for none. It stays the caller's to close.
	Store *superstep.Store
	// Version is what /info says.
	Version string
	// Logger is told what goes wrong; nil for nobody.
	Logger *zap.Logger
}

// Server is a handler of the protocol. It works on the records of threads until it is closed.
type Server struct {
	client  *superstep.Client
	cfg     Config
	worker  worker.Worker
	records *record.Records
	index   index[record.Line]
	kept    assistant.Store
	known   index[assistant.Line]
	crons   cron.Store
	due     index[cron.Line]
	callers *callers
	// draining says that requests end because the server does.
	draining atomic.Bool
	// description is that of the paths.
	description once
	mux         *http.ServeMux
	log         *zap.SugaredLogger

	// asks are what is asked of the workers just now, once for all who want to know.
	asks  singleflight.Group
	mu    sync.Mutex
	specs map[string]specKept
}

type specKept struct {
	spec *pregel.Spec
	at   time.Time
	// context is the schema of the context of the graph's runs, nil for none. It is asked for when a run has a context: described says
	// that it was.
	context   json.RawMessage
	described bool
}

// Drain says that the server is about to end: clients whose requests end from now on have not gone, so what they asked to be cancelled
// when they go is not. Give it to http.Server.RegisterOnShutdown.
func (s *Server) Drain() { s.draining.Store(true) }

// Close ends the work on records: other servers, or this one when it is started again, go on with it.
func (s *Server) Close() { s.worker.Stop() }

// route is a path of the protocol.
type route struct {
	method, path, about string
	do                  func(http.ResponseWriter, *http.Request) error
}

// handling makes a handler of what does the work: an error becomes a refusal. A request whose caller has to prove anew who it is breaks
// off when its answer has begun, as one of a server that is killed: clients go on behind what they have.
func (s *Server) handling(c contract, do func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out := &outgoing{ResponseWriter: w}
		err := door{s}.within(out, r, c, do)
		if errors.Is(err, errExpired) && out.begun {
			panic(http.ErrAbortHandler)
		}
		if err == nil {
			return
		}
		f := faultOf(err)
		if r.Context().Err() != nil && f.status != http.StatusRequestTimeout {
			return // the client has gone
		}
		switch f.status {
		case http.StatusInternalServerError:
			s.log.Errorw("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			w.Header().Set("Retry-After", "1")
		}
		answer(out, f.status, refusal{f.detail})
	}
}

// within does the work of a request within the limits of the server and of who sends it, and in that name.
func (s door) within(w http.ResponseWriter, r *http.Request, c contract, do func(http.ResponseWriter, *http.Request) error) error {
	if c.open {
		return do(w, r)
	}
	leave, err := s.callers.enter()
	if err != nil {
		return err
	}
	defer leave()
	if len(c.does) == 0 && s.cfg.Authenticate != nil {
		return access.ErrForbidden // nobody has said what it does
	}
	r, end, err := s.visiting(r, c.does)
	if err != nil {
		return err
	}
	defer end()
	name := remote(r)
	if who := by(r.Context()); who != "" {
		name = who
	}
	if leave, err = s.callers.of(name); err != nil {
		return err
	}
	defer leave()
	if c.body != nil {
		// A connection that takes no deadline has the bounds of the http.Server alone.
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.callers.limits.Body)); err != nil {
			s.log.Debugw("the body of a request has no deadline", "error", err)
		}
		r.Body = &incoming{ReadCloser: r.Body, all: s.callers.bodies}
		defer r.Body.Close()
	}
	err = do(w, r)
	if cause := context.Cause(r.Context()); errors.Is(cause, errExpired) {
		return cause
	}
	return err
}

// refusal is the body of an answer that refuses.
type refusal struct {
	Detail string `json:"detail"`
}

// outgoing knows whether an answer has begun.
type outgoing struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (w *outgoing) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *outgoing) Write(text []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(text)
}

// Unwrap is for http.ResponseController.
func (w *outgoing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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
	spec, err, _ := s.asks.Do("spec "+graph, func() (any, error) {
		spec, err := s.client.GraphSpec(context.WithoutCancel(ctx), graph)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.specs[graph] = specKept{spec: spec, at: time.Now()}
		}
		return spec, err
	})
	return spec.(*pregel.Spec), err
}

// contextSchema is the schema of the context of a graph's runs, nil when it has none.
func (s *Server) contextSchema(ctx context.Context, graph string) (json.RawMessage, error) {
	s.mu.Lock()
	kept := s.specs[graph]
	s.mu.Unlock()
	if kept.described && time.Since(kept.at) < specFor {
		return kept.context, nil
	}
	schema, err, _ := s.asks.Do("schemas "+graph, func() (any, error) {
		known, err := s.client.GraphSchemas(context.WithoutCancel(ctx), graph)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if kept := s.specs[graph]; kept.spec != nil {
				kept.context, kept.described = known.Context, true
				s.specs[graph] = kept
			}
		}
		return known.Context, err
	})
	return schema.(json.RawMessage), err
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
