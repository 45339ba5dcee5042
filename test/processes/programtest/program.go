// Package programtest runs a main package's program in the package's own tests as a user does: as a process with a
// screen, signals and children.
package programtest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// envMain makes the test binary the program itself.
const envMain = "SUPERSTEP_PROGRAM_TEST_MAIN"

// patience bounds a program on a machine that is busy with other things, or that compiles the Temporal server first.
const patience = 9 * time.Minute

// Main is the whole TestMain of a package whose tests call [Launch].
func Main(m *testing.M, program func()) {
	if os.Getenv(envMain) != "" {
		program()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Program is a program that was started. Its methods are not for concurrent use.
type Program struct {
	cmd   *exec.Cmd
	dir   string
	drawn chan struct{} // closed at the screen's end

	mu     sync.Mutex
	screen bytes.Buffer
	more   chan struct{} // gets an element when there is more on the screen
}

// Launch starts the program without a terminal, and kills it at the test's end if it runs then. Its data belong in dir,
// which all its processes must have in their arguments: they are found by it. env is added to the environment.
func Launch(t *testing.T, dir string, env []string, args ...string) *Program {
	t.Helper()
	if testing.Short() {
		t.Skip("runs processes for some ten seconds, and compiles a Temporal server if that was never done")
	}
	p := &Program{cmd: exec.Command(os.Args[0], args...), dir: dir, drawn: make(chan struct{}), more: make(chan struct{}, 1)}
	p.cmd.Env = append(append(os.Environ(), envMain+"=1"), env...)
	screen, writer, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	require.NoError(t, p.cmd.Start())
	require.NoError(t, writer.Close())
	go p.watch(screen)
	bound := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	t.Cleanup(func() {
		bound.Stop()
		_ = p.cmd.Process.Kill() // fails if it has ended, which is fine
	})
	return p
}

// watch reads the screen to its end.
func (p *Program) watch(screen *os.File) {
	defer close(p.drawn)
	defer func() { _ = screen.Close() }()
	_, _ = io.Copy(p, screen) // until the program and its heirs are gone
}

// Write takes what the program writes.
func (p *Program) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.screen.Write(text)
	select {
	case p.more <- struct{}{}:
	default:
	}
	return len(text), nil
}

// Screen returns what the program has shown.
func (p *Program) Screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// Until returns once the screen matches a pattern, with its submatches.
func (p *Program) Until(t *testing.T, pattern string) []string {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	for {
		if match := wanted.FindStringSubmatch(p.Screen()); match != nil {
			return match
		}
		select {
		case <-p.more:
		case <-p.drawn:
			require.Regexp(t, wanted, p.Screen(), "the program has ended")
		}
	}
}

// Signal sends the program a signal.
func (p *Program) Signal(t *testing.T, s os.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

// End returns the exit code of a program that ends, -1 when a signal ended it, and its whole screen.
func (p *Program) End(t *testing.T) (exit int, screen string) {
	t.Helper()
	_ = p.cmd.Wait() // how it ended is in ProcessState
	<-p.drawn
	return p.cmd.ProcessState.ExitCode(), p.Screen()
}

// Processes returns the processes that the program started and that run: pids by command line.
func (p *Program) Processes(t *testing.T) map[string]string {
	t.Helper()
	all, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "args=").Output()
	require.NoError(t, err)
	found := map[string]string{}
	for line := range strings.Lines(string(all)) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(args, p.dir+string(filepath.Separator)) {
			found[strings.TrimSpace(args)] = pid
		}
	}
	return found
}

// Kill kills the processes of the program that have an argument that contains this.
func (p *Program) Kill(t *testing.T, argument string) {
	t.Helper()
	killed := 0
	for args, pid := range p.Processes(t) {
		if !strings.Contains(args, argument) {
			continue
		}
		number, err := strconv.Atoi(pid)
		require.NoError(t, err)
		process, err := os.FindProcess(number)
		require.NoError(t, err)
		require.NoError(t, process.Kill())
		killed++
	}
	require.NotZero(t, killed, "no process has %s in its arguments", argument)
}
