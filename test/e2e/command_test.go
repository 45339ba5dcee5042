package e2e_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/stretchr/testify/require"
)

// ended is how one command line ended.
type ended struct {
	code           int
	stdout, stderr string
}

// running is a command line under way.
type running struct {
	r              *rig
	cmd            *exec.Cmd
	stdout, stderr output
}

// output is what a command has written so far. It is safe for concurrent use.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns it.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// superstep runs one command line to its end, with the connection to the rig's server and task queue added.
func (r *rig) superstep(args ...string) ended {
	r.t.Helper()
	return r.begun(args...).end()
}

// begun starts one command line.
func (r *rig) begun(args ...string) *running {
	r.t.Helper()
	return r.begunWith(append(args, "--address", r.address, "--task-queue", r.queue)...)
}

// starter runs the starter to its end.
func (r *rig) starter(args ...string) ended {
	r.t.Helper()
	return r.begunBy(r.binary(starterCommand), append(args, r.connection()...)).end()
}

func (r *rig) begunWith(args ...string) *running {
	r.t.Helper()
	return r.begunBy(r.binary(superstepCommand), args)
}

// own starts one command line of the program that has the graphs of these tests.
func (r *rig) own(args ...string) *running {
	r.t.Helper()
	return r.begunBy(os.Args[0], append(args, "--address", r.address, "--task-queue", r.queue), asProgram+"=1")
}

func (r *rig) begunBy(program string, args []string, env ...string) *running {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	r.t.Cleanup(cancel)
	p := &running{r: r, cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Env = environment(env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	require.NoError(r.t, p.cmd.Start())
	return p
}

// interrupt is Ctrl-C.
func (p *running) interrupt() {
	p.r.t.Helper()
	require.NoError(p.r.t, p.cmd.Process.Signal(syscall.SIGINT))
}

func (p *running) end() ended {
	_ = p.cmd.Wait() // how it ended is in ProcessState
	return ended{code: p.cmd.ProcessState.ExitCode(), stdout: p.stdout.String(), stderr: p.stderr.String()}
}

// exits wants an exit code, and of a command that says what is wrong, that it does so in one line.
func (r *rig) exits(code int, e ended) ended {
	r.t.Helper()
	require.Equal(r.t, code, e.code, "stdout:\n%s\nstderr:\n%s", e.stdout, e.stderr)
	if e.stderr != "" {
		require.Equal(r.t, 1, strings.Count(e.stderr, "\n"), "stderr is one line: %q", e.stderr)
	}
	return e
}
