//go:build unix

package processes_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// launch starts a program that runs a family, and returns once all of it runs.
func launch(t *testing.T, name string, w *witness) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	c := role(name, w.env(), envReady+"="+filepath.Join(dir, "ready"), envLogs+"="+dir)
	cmd, out = exec.Command(c.Path), &bytes.Buffer{}
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, out, out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // fails if it has ended, which is fine
	w.sees(t, name, "family", "deaf", started)
	return cmd, out
}

func TestNothingIsLeftBehind(t *testing.T) {
	for _, one := range []struct {
		name string
		role string
		end  []os.Signal
		exit int // -1 by a signal
		says string
	}{
		{"SIGINT", "program", []os.Signal{syscall.SIGINT}, 0, "stopped: stopped by a signal: interrupt\n"},
		{"SIGTERM", "program", []os.Signal{syscall.SIGTERM}, 0, "stopped: stopped by a signal: terminated\n"},
		{"a signal that comes twice", "program", []os.Signal{syscall.SIGINT, syscall.SIGINT}, 0, "interrupt\n"},
		{"SIGKILL", "program", []os.Signal{syscall.SIGKILL}, -1, ""},
		{"panic", "panic", []os.Signal{syscall.SIGTERM}, 2, "panic: for the test"},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			w := newWitness(t)
			cmd, out := launch(t, one.role, w)
			for _, s := range one.end {
				require.NoError(t, cmd.Process.Signal(s))
			}
			_ = cmd.Wait() // how it ended is in ProcessState
			require.Equal(t, one.exit, cmd.ProcessState.ExitCode(), "%s", out)
			require.Contains(t, out.String(), one.says)
			w.seesEnd(t, "family")
			w.seesEnd(t, "deaf")
		})
	}
}
