package main_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

const (
	// A start takes one to three seconds. These bounds only end a test whose
	// server hangs, on a machine that is busy with other things.
	startTimeout = 3 * time.Minute
	stopTimeout  = 3 * time.Minute
	poll         = 20 * time.Millisecond
)

// binary is the devserver, built once for all tests unless the environment says
// where it is. It is a real process that gets real signals, and is built without
// -race whatever the tests run with: the server itself would be many times slower.
var binary = os.Getenv("SUPERSTEP_TEST_DEVSERVER")

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	defer stopPostgres()
	if binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "devserver")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a directory for the binary:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "devserver")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the devserver: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// process is a devserver that was started by a test.
type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer // to be read after exited
	line   chan string  // gets the first line of stdout; closed at its end
	exited chan struct{}
}

// launch starts the devserver in a directory of its own. It is killed at the end
// of the test if it still runs.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	return launchIn(t, nil, args...)
}

// launchIn does so with variables added to the environment.
func launchIn(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{line: make(chan string, 1), exited: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.exited)
		scanner := bufio.NewScanner(stdout)
		if scanner.Scan() {
			p.line <- scanner.Text()
		}
		close(p.line)
		for scanner.Scan() { // Wait must not run before stdout has been read
		}
		_ = p.cmd.Wait() // its outcome is in ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails if it has exited, which is fine
		<-p.exited
		if t.Failed() {
			t.Logf("devserver %s wrote to stderr:\n%s", strings.Join(args, " "), p.stderr.String())
		}
	})
	return p
}

// running is a devserver that has said that it is ready.
type running struct {
	*process
	line    string // what it announced
	address string // host:port of the Temporal API
	ui      string // URL of the Web UI, "" when headless
}

var announced = regexp.MustCompile(`^devserver (\S+)(?:   web UI (\S+))?   db (.+)$`)

// start launches a devserver on free ports and waits until it is ready.
func start(t *testing.T, db string, args ...string) *running {
	t.Helper()
	return ready(t, launch(t, append([]string{"--db", db, "--port", "0", "--ui-port", "0"}, args...)...))
}

// ready waits until a devserver says that it is.
func ready(t *testing.T, p *process) *running {
	t.Helper()
	select {
	case line := <-p.line:
		parts := announced.FindStringSubmatch(line)
		require.NotNil(t, parts, "announcement %q; stderr: see below", line)
		return &running{process: p, line: line, address: parts[1], ui: parts[2]}
	case <-time.After(startTimeout):
		require.FailNow(t, "the devserver did not get ready")
		return nil
	}
}

// stop sends SIGTERM and returns the exit code.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	return p.exitCode(t)
}

// kill ends the process the way a crash does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	p.exitCode(t)
}

func (p *process) exitCode(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(stopTimeout):
		require.FailNow(t, "the devserver did not exit")
		return 0
	}
}

// dial connects to a running devserver for the length of a test.
func dial(t *testing.T, address string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address, Logger: silent{}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// within bounds the calls of one test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// silent drops what the SDK logs about servers that these tests take away.
type silent struct{}

var _ log.Logger = silent{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
