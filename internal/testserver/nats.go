package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

// EnvNATS holds the path of a nats-server to test with, another one than that which is built.
const EnvNATS = "SUPERSTEP_TEST_NATS"

// NATS is a NATS server of a test's own with JetStream, over a directory: a process that can be killed. Its address and what it keeps
// stay the same over a new start. Its methods are not for concurrent use.
type NATS struct {
	// URL is nats://HOST:PORT.
	URL    string
	dir    string
	binary string
	port   int
	child  *child
}

// natsBinary builds the NATS server once per process.
var natsBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(EnvNATS); path != "" {
		return path, nil
	}
	return toolBinary("nats-server", "test/tools/nats", "github.com/nats-io/nats-server/v2", "the NATS server: a minute")
})

// NATSBinary returns the path of a nats-server, for a test that starts it as it likes.
func NATSBinary(t testing.TB) string {
	t.Helper()
	binary, err := natsBinary()
	if err != nil {
		t.Fatalf("a NATS server for this test: %v", err)
	}
	return binary
}

// StartNATS starts a NATS server over a directory of the test's own, and ends it at the test's end.
func StartNATS(t testing.TB) *NATS {
	t.Helper()
	s := &NATS{dir: t.TempDir(), binary: NATSBinary(t)}
	var err error
	for range 3 { // the port may be another process's
		s.port = 0
		if err = s.Restart(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("a NATS server for this test: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the NATS server at %s wrote:\n%s", s.URL, s.child.output)
		}
		if err := s.Kill(); err != nil {
			t.Errorf("end the NATS server: %v", err)
		}
	})
	return s
}

// Kill ends the server as a crash does (SIGKILL).
func (s *NATS) Kill() error { return s.child.kill() }

// Freeze stops the server without ending it (SIGSTOP): connections stay, and nothing answers. Thaw has it go on.
func (s *NATS) Freeze() error { return freeze(s.child.cmd) }

// Thaw has a frozen server go on.
func (s *NATS) Thaw() error { return thaw(s.child.cmd) }

// Restart starts the server on its directory and its address, and returns once it serves.
func (s *NATS) Restart() error {
	if s.port == 0 {
		s.port = freePort()
		s.URL = fmt.Sprintf("nats://127.0.0.1:%d", s.port)
	}
	c, err := spawn(exec.Command(s.binary, "--addr", "127.0.0.1", "--port", strconv.Itoa(s.port), "--jetstream", "--store_dir", s.dir), "")
	if err != nil {
		return err
	}
	s.child = c
	if err := s.awaitServing(); err != nil {
		return errors.Join(fmt.Errorf("start the NATS server: %w\n%s", err, c.output), c.kill())
	}
	return nil
}

// awaitServing waits for the greeting that a NATS server sends to whoever connects.
func (s *NATS) awaitServing() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		if conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))); err == nil {
			greeting := make([]byte, 4)
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			_, err = conn.Read(greeting)
			_ = conn.Close()
			if err == nil && string(greeting) == "INFO" && !s.child.over() {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.child.exited:
			return fmt.Errorf("it ended before it served: %s", s.child.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("it does not serve after %v", startTimeout)
		}
	}
}
