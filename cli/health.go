package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"superstep.dev/cli/screen"
)

// healthState is what a worker says of itself.
type healthState int32

// The states of a worker.
const (
	healthStarting healthState = iota
	healthReady
	healthDraining
)

// String implements fmt.Stringer.
func (s healthState) String() string { return [...]string{"starting", "ready", "draining"}[s] }

// noServer is what a worker says that has no server to take tasks from.
const noServer = "no server"

// health answers /healthz: 200 while tasks are taken, 503 before and after, and while the server does not answer.
type health struct {
	state  atomic.Int32
	server serverProbe
}

// set moves on to a state. A worker that drains never becomes ready again.
func (h *health) set(s healthState) {
	for {
		was := h.state.Load()
		if int32(s) <= was || h.state.CompareAndSwap(was, int32(s)) {
			return
		}
	}
}

// serverAnswers has the server asked too, from now on.
func (h *health) serverAnswers(ask askServer) {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	h.server.ask = ask
}

// ServeHTTP implements http.Handler.
func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	state := healthState(h.state.Load())
	text, ready := state.String(), state == healthReady
	if ready && !h.server.answers(r.Context()) {
		text, ready = noServer, false
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	io.WriteString(w, text+"\n") // the asker may be gone
}

// askServer is a Temporal client's CheckHealth.
type askServer func(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error)

// What one question to the server may take, and for how long its answer holds: whoever asks for the worker's health often
// does not load the server.
const (
	probeWithin = time.Second
	probeHolds  = time.Second
)

// serverProbe knows whether the server answers.
type serverProbe struct {
	mu       sync.Mutex
	ask      askServer // nil when there is nobody to ask
	asked    time.Time
	answered bool
}

// answers reports whether the server answers now.
func (p *serverProbe) answers(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ask == nil {
		return true
	}
	if time.Since(p.asked) < probeHolds {
		return p.answered
	}
	// Others wait for this answer too, so it does not end with the one who asked.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeWithin)
	defer cancel()
	_, err := p.ask(ctx, &client.CheckHealthRequest{})
	p.answered, p.asked = isThere(err), time.Now()
	return p.answered
}

// isThere reports whether a health check that ended so met a server. One behind a proxy may not offer such checks.
func isThere(err error) bool {
	return slices.Contains([]codes.Code{codes.OK, codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated,
		codes.ResourceExhausted}, status.Code(err))
}

// healthTimeout bounds one health check; a healthy worker answers in milliseconds.
const healthTimeout = 3 * time.Second

func (a operating) healthcheckCommand() *cobra.Command {
	var addr string
	return a.build(command{
		name: "healthcheck",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&addr, "addr", "127.0.0.1:9090", "the worker's --metrics-addr, `HOST:PORT`")
		},
		run: func(ctx context.Context, _ []string) error { return a.healthcheck(ctx, addr) },
	})
}

func (a operating) healthcheck(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return usagef("--addr %s is not HOST:PORT", quoted(addr))
	}
	addr = net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	state, healthy, err := askHealth(ctx, addr)
	if err != nil {
		return fmt.Errorf("no worker answers at %s: %w", addr, err)
	}
	a.Show(map[string]any{"state": state, "healthy": healthy}, func() { a.Printf("%s\n", screen.Clean(state)) })
	if !healthy {
		return statusExit(ExitFailed)
	}
	return nil
}

// askHealth returns the state that a worker reports.
func askHealth(ctx context.Context, addr string) (state string, healthy bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return "", false, err
	}
	// No proxy: the worker is in this container or next to it. No redirect: it has nowhere to send us.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 256))
	if err != nil {
		return "", false, err
	}
	return strings.TrimSpace(string(body)), resp.StatusCode == http.StatusOK, nil
}
