package payments

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"
)

// FaultExitCode is the exit status of a process that died of
// [Faults.DieAfterCommit].
const FaultExitCode = 86

// storeTimeout bounds one transaction, waiting for the file included.
const storeTimeout = 10 * time.Second

// ServerConfig sets a Server up. The zero value is usable.
type ServerConfig struct {
	// Logger receives one line for every write that commits and every fault
	// that strikes; nil discards them.
	Logger *slog.Logger
	// Exit ends the process for DieAfterCommit; nil is os.Exit. It is expected
	// not to return; if it does, the connection is dropped without a reply.
	Exit func(code int)
	// Hosts are names under which the service is called, beside localhost and IP
	// addresses: it answers 403 under others.
	Hosts []string
}

// A Server answers the HTTP interface of the payments service from a Store.
//
// A write that was received is carried out even when its caller has gone: no
// provider takes money back because a connection closed. Only [Server.Stop]
// refuses the ones that have not committed.
type Server struct {
	store *Store
	log   *slog.Logger
	exit  func(int)
	mux   *http.ServeMux
	web   http.Handler // mux behind the guard of its hosts

	stop    sync.Once
	stopped chan struct{}
}

// NewServer returns a handler on the store. The caller closes the store, after
// the last request.
func NewServer(store *Store, config ServerConfig) *Server {
	s := &Server{store: store, log: config.Logger, exit: config.Exit, mux: http.NewServeMux(), stopped: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.exit == nil {
		s.exit = os.Exit
	}
	s.routes()
	s.web = guardHost(s.mux, config.Hosts...)
	return s
}

func (s *Server) routes() {
	s.mux.HandleFunc("GET /healthz", s.health)
	s.mux.HandleFunc("GET /orders/{id}", s.getOrder)
	s.mux.HandleFunc("PUT /orders/{id}", s.putOrder)
	s.mux.HandleFunc("GET /refunds", s.getRefunds)
	s.mux.HandleFunc("POST "+PathRefunds, s.postRefund)
	s.mux.HandleFunc("POST "+PathReversals, s.postReversal)
	s.mux.HandleFunc("GET /notifications", s.getNotification)
	s.mux.HandleFunc("POST "+PathNotifications, s.postNotification)
	s.mux.HandleFunc("GET /stats", s.getStats)
	s.mux.HandleFunc("GET /faults", s.getFaults)
	s.mux.HandleFunc("PUT /faults", s.putFaults)
	s.mux.HandleFunc("DELETE /faults", s.deleteFaults)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.web.ServeHTTP(w, r) }

// Stop ends what faults hold back: delayed writes are answered 503 without
// committing, hanging ones are dropped. Without it a graceful shutdown would
// wait for them. It can be called more than once.
func (s *Server) Stop() { s.stop.Do(func() { close(s.stopped) }) }

// storeContext outlives the caller's connection, for the writes that must be
// carried out once they were received, and is bounded by itself.
func storeContext(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), storeTimeout)
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := storeContext(r)
	defer cancel()
	if err := s.store.ping(ctx); err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, http.StatusOK, map[string]string{"status": "ok"})
}
