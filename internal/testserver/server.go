package testserver

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// startTimeout bounds a start, which takes one to three seconds; it is that long for busy machines.
const startTimeout = 3 * time.Minute

// Options shape a server.
type Options struct {
	// DB is the server's SQLite file; "" means one in a directory that goes with the server.
	DB string
	// Stock leaves the server's settings as Temporal ships them.
	Stock bool
	// Live has the server carry live tokens (NATS), and say so.
	Live bool
	// Values is the directory where programs find that large values lie; "" has them leave these in the database.
	Values string
	// Store is the directory where programs find the store of graphs; "" means one beside DB.
	Store string
}

// Server is a devserver process. Its address and its file stay the same over a stop and a new start. Its methods are
// not for concurrent use, except Address.
type Server struct {
	opts    Options
	binary  string
	dir     string // holds what is not to be kept
	address string
	live    int // the port of live tokens, 0 for none
	child   *child
}

// Launch starts a server. It is for programs; tests use [Start].
func Launch(binary string, opts Options) (*Server, error) {
	dir, err := os.MkdirTemp("", "superstep-testserver-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the server: %w", err)
	}
	if opts.DB == "" {
		opts.DB = filepath.Join(dir, "server.db")
	}
	s := &Server{opts: opts, binary: binary, dir: dir}
	// Another process may take a port between its choice and its use: other ports are tried then.
	for range 3 {
		if err = s.Restart(); err == nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// Start starts a server that is the test's own, and stops it at the test's end.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("a Temporal server for this test: %v", err)
	}
	s, err := Launch(path, opts)
	if err != nil {
		t.Fatalf("a Temporal server for this test: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the Temporal server at %s wrote:\n%s", s.address, s.Output())
		}
		if err := s.Close(); err != nil {
			t.Errorf("stop the Temporal server: %v", err)
		}
	})
	return s
}

// Address returns the host:port of the server's API.
func (s *Server) Address() string { return s.address }

// Output returns the end of what the server's newest process wrote.
func (s *Server) Output() string { return s.child.output.String() }

// Restart starts the server again on its file and its address, after Stop or Kill, and returns once it serves.
func (s *Server) Restart() error {
	if s.child != nil && !s.child.over() {
		return errors.New("start the Temporal server: it runs")
	}
	ready := filepath.Join(s.dir, "ready")
	if err := os.RemoveAll(ready); err != nil { // a killed one leaves it behind
		return fmt.Errorf("start the Temporal server: %w", err)
	}
	cmd := exec.Command(s.binary, s.args(ready)...)
	c, err := spawn(cmd, s.dir)
	if err != nil {
		return fmt.Errorf("start the Temporal server: %w", err)
	}
	s.child = c
	address, err := awaitReady(c, ready)
	if err != nil {
		return errors.Join(fmt.Errorf("start the Temporal server: %w\n%s", err, c.output), c.kill())
	}
	s.address = address
	return nil
}

// Vacuum writes the file of a stopped server anew, without what was deleted from it.
func (s *Server) Vacuum() error {
	if out, err := exec.Command(s.binary, "vacuum", "--db", s.opts.DB).CombinedOutput(); err != nil {
		return fmt.Errorf("vacuum the server's file: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) args(ready string) []string {
	args := []string{"--headless", "--db", s.opts.DB, "--values", cmp.Or(s.opts.Values, "none"), "--ready-file", ready, "--port"}
	_, port, err := net.SplitHostPort(s.address)
	if err != nil { // the first start
		port = "0"
	}
	args = append(args, port)
	if s.opts.Stock {
		args = append(args, "--stock")
	}
	if s.opts.Store != "" {
		args = append(args, "--store", s.opts.Store)
	}
	if !s.opts.Live {
		return append(args, "--live", "none")
	}
	if port == "0" {
		s.live = freePort()
	}
	return append(args, "--live-port", strconv.Itoa(s.live))
}

// awaitReady waits for the file by which a devserver says where it serves.
func awaitReady(c *child, file string) (address string, err error) {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(file); err == nil {
			return strings.TrimSpace(string(text)), nil
		}
		select {
		case <-tick.C:
		case <-c.exited:
			return "", fmt.Errorf("it ended before it served: %s", c.cmd.ProcessState)
		case <-deadline.C:
			return "", fmt.Errorf("it does not serve after %v", startTimeout)
		}
	}
}

// Stop ends the server in order. What it acknowledged is in its file.
func (s *Server) Stop() error {
	if err := s.child.stop(); err != nil {
		return fmt.Errorf("stop the Temporal server: %w", err)
	}
	return nil
}

// Kill ends the server as a crash does (SIGKILL). What it acknowledged is in its file.
func (s *Server) Kill() error { return s.child.kill() }

// Close ends the server for good.
func (s *Server) Close() error { return errors.Join(s.Stop(), os.RemoveAll(s.dir)) }

// shared is the server of this process, started once.
var shared = sync.OnceValues(func() (*Server, error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	return Launch(path, Options{})
})

// Address returns the address of the server that all tests share: that of SUPERSTEP_TEST_ADDRESS, or one that this
// process starts now. It is no test's to stop. The test fails when there is none.
func Address(t testing.TB) string {
	t.Helper()
	address, err := Shared()
	if err != nil {
		t.Fatalf("a Temporal server for tests: %v", err)
	}
	return address
}

// Shared is [Address] for those who can do without: the error is [ErrNoSource] outside the server's workspace.
func Shared() (address string, err error) {
	if address := os.Getenv(EnvAddress); address != "" {
		return address, nil
	}
	s, err := shared()
	if err != nil {
		return "", err
	}
	return s.Address(), nil
}

// Queue returns the name of a task queue, or of a thread, that no other test uses: the test's name and a random part.
func Queue(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' || r == '"' || r == '\'' {
			return '-'
		}
		return r
	}, t.Name())
	const most = 80 // thread ids are bounded, and a longer name helps nobody
	return strings.ToValidUTF8(name[:min(len(name), most)], "") + "-" + strings.ToLower(rand.Text()[:8])
}
