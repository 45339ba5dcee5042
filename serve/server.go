package serve

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
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
	// Origins are the origins of web pages that may use the server; none for any.
	Origins []string
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
	watches watches
	mux     *http.ServeMux
	log     *zap.SugaredLogger

	mu    sync.Mutex
	specs map[string]specKept
}

type specKept struct {
	spec *pregel.Spec
	at   time.Time
}

// Close ends the work on records: other servers, or this one when it is started again, go on with it.
func (s *Server) Close() { s.worker.Stop() }

// route is a path of the protocol.
type route struct {
	method, path, about string
	do                  func(http.ResponseWriter, *http.Request) error
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
