// Package stack builds this repository's programs and runs them together: the Temporal development server, workers of an
// example, and the payments service of the refund example.
package stack

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"superstep.dev/test/processes"
)

// The addresses that the programs take unless they are taken.
const (
	DefaultAddress  = "127.0.0.1:7233"
	DefaultWebUI    = "127.0.0.1:8233"
	DefaultLive     = "127.0.0.1:8234"
	DefaultPayments = "127.0.0.1:8090"
	DefaultService  = "127.0.0.1:2024"
)

// Config says where and how the programs run.
type Config struct {
	// Dir holds their databases and ready files; it must exist. Databases that are there are used again.
	Dir string
	// AnyPort takes free ports even where the usual ones are free.
	AnyPort bool
	// Postgres is the DSN of the server's database, "" for a file in Dir.
	Postgres string
	// Env is added to the workers' environment: "REFUND_LIMIT=5000".
	Env []string
	// Drain is how long a worker that is stopped lets running tasks finish.
	Drain time.Duration
	// LostAfter is after how much silence a worker is taken for lost; 0 leaves that to the worker.
	LostAfter time.Duration
	// Output returns who gets the output of a process besides its log; nil is nobody.
	Output func(name string) io.Writer
}

// Stack is the programs that run together. Its set stops them.
type Stack struct {
	// Address is the Temporal server's host:port, WebUI and Payments are URLs.
	Address, WebUI, Payments string

	set      *processes.Set
	programs Programs
	cfg      Config
	workers  int
}

// Start starts the Temporal server in set, and the payments service if there is one, and returns once they serve.
func Start(ctx context.Context, set *processes.Set, programs Programs, cfg Config) (*Stack, error) {
	s := &Stack{set: set, programs: programs, cfg: cfg}
	// The programs of this stack go where it says, not where a configuration of this machine does.
	if err := os.WriteFile(s.file("temporal.toml"), nil, 0o600); err != nil {
		return nil, fmt.Errorf("make an empty configuration for the programs: %w", err)
	}
	if err := s.startServer(ctx); err != nil {
		return nil, err
	}
	if programs.Payments == "" {
		return s, nil
	}
	return s, s.startPayments(ctx)
}

// announced is the line by which the devserver says that it serves, and where.
var announced = regexp.MustCompile(`^devserver (\S+) +web UI (\S+)`)

func (s *Stack) startServer(ctx context.Context) error {
	database := []string{"--db", s.file("superstep.db")}
	if s.cfg.Postgres != "" {
		database = []string{"--postgres", s.cfg.Postgres}
	}
	p, err := s.start(ctx, processes.Command{
		Name: "devserver", Path: s.programs.Devserver,
		Args: append(database, "--port", s.port(DefaultAddress), "--ui-port", s.port(DefaultWebUI),
			"--live-port", s.port(DefaultLive), "--ready-file", s.file("devserver.ready")),
		ReadyFile: s.file("devserver.ready"), ReadyLine: announced, StopWithin: time.Minute,
	})
	if err != nil {
		return err
	}
	s.Address, s.WebUI = p.Said()[0], p.Said()[3]
	return nil
}

func (s *Stack) startPayments(ctx context.Context) error {
	p, err := s.start(ctx, processes.Command{
		Name: "payments", Path: s.programs.Payments,
		Args: []string{"--addr", "127.0.0.1:" + s.port(DefaultPayments), "--db", s.file("payments.db"),
			"--ready-file", s.file("payments.ready")},
		ReadyFile: s.file("payments.ready"),
	})
	if err != nil {
		return err
	}
	s.Payments = "http://" + p.Said()[0]
	return nil
}

// Worker starts one more worker, worker-1 first, and returns once it takes tasks. env is added to the environment of this one.
func (s *Stack) Worker(ctx context.Context, env ...string) (*processes.Process, error) {
	s.workers++
	name := fmt.Sprintf("worker-%d", s.workers)
	args := []string{"--ready-file", s.file(name + ".ready"), "--drain-timeout", s.cfg.Drain.String()}
	if s.cfg.LostAfter > 0 {
		args = append(args, "--lost-after", s.cfg.LostAfter.String())
	}
	return s.start(ctx, processes.Command{
		Name: name, Path: s.programs.Worker, Args: args,
		Env: append(append(s.Env(), s.cfg.Env...), env...), ReadyFile: s.file(name + ".ready"),
		StopWithin: s.cfg.Drain + 30*time.Second,
	})
}

// announcedService is the line by which a web service says that it serves, and where.
var announcedService = regexp.MustCompile(`^chat +(http://(\S+)/chat/)$`)

// Service starts the web service of the example at an address, "" for the usual one, and returns once it serves: the process has said its
// page's URL and its address.
func (s *Stack) Service(ctx context.Context, at string, args ...string) (p *processes.Process, page, address string, err error) {
	if at == "" {
		at = "127.0.0.1:" + s.port(DefaultService)
	}
	p, err = s.start(ctx, processes.Command{Name: "service", Path: s.programs.Service, Args: append([]string{"--listen", at}, args...),
		Env: s.Env(), ReadyLine: announcedService})
	if err != nil {
		return nil, "", "", err
	}
	return p, p.Said()[1], p.Said()[2], nil
}

// Superstep runs the command line against the stack and returns its exit code. out gets what it writes.
func (s *Stack) Superstep(ctx context.Context, out io.Writer, args ...string) (exit int, err error) {
	return s.set.Run(ctx, processes.Command{
		Name: "superstep", Path: s.programs.Superstep, Args: args, Env: s.Env(), Output: out,
	})
}

// Draw writes the drawing of the refund example's graph.
func (s *Stack) Draw(ctx context.Context, out io.Writer) error {
	code, err := s.set.Run(ctx, processes.Command{
		Name: "graph", Path: s.programs.Superstep, Args: []string{"graph", "refund"}, Env: s.Env(), Output: out,
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("the graph is not drawn:\n%s", s.set.Tail("graph", shownLines))
	}
	return err
}

func (s *Stack) start(ctx context.Context, c processes.Command) (*processes.Process, error) {
	if s.cfg.Output != nil {
		c.Output = s.cfg.Output(c.Name)
	}
	return s.set.Start(ctx, c)
}

func (s *Stack) file(name string) string { return filepath.Join(s.cfg.Dir, name) }

// Env is this process's environment, with this stack's addresses in place of any other Temporal connection's.
func (s *Stack) Env() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "TEMPORAL_") && !strings.HasPrefix(pair, "PAYMENTS_URL=") {
			env = append(env, pair)
		}
	}
	env = append(env, "TEMPORAL_ADDRESS="+s.Address, "TEMPORAL_NAMESPACE=default",
		"TEMPORAL_CONFIG_FILE="+s.file("temporal.toml"))
	if s.Payments == "" {
		return env
	}
	return append(env, "PAYMENTS_URL="+s.Payments)
}
