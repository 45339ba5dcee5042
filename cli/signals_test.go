package cli

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets this test binary be a program of a user's, for tests that need a real process.
func TestMain(m *testing.M) {
	if os.Getenv("CLI_TEST_PROGRAM") != "" {
		Main(drawn{"refund"})
	}
	os.Exit(m.Run())
}

// program returns this binary as a program with the given arguments, far from the machine's own configuration.
func program(t *testing.T, args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "CLI_TEST_PROGRAM=1", "TEMPORAL_CONFIG_FILE="+t.TempDir()+"/none.toml")
	return cmd
}

func TestMainEndsWithTheCode(t *testing.T) {
	cmd := program(t, "show")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.Error(t, cmd.Run())
	require.Equal(t, ExitUsage, cmd.ProcessState.ExitCode())
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"))
}

// TestMainStopsOnSignal sends a real signal to a worker that waits for its server.
func TestMainStopsOnSignal(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := program(t, "worker", "--address", "127.0.0.1:1", "--connect-timeout", "10m")
		stderr, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(stderr)
		first, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, first, "no Temporal server yet")
		require.NoError(t, cmd.Process.Signal(signal))
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(rest), "stopped before the worker was ready\n"), string(rest))
		require.Error(t, cmd.Wait())
		require.Equal(t, ExitInterrupted, cmd.ProcessState.ExitCode())
	}
}

func TestSecondSignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	var first bool
	var second os.Signal
	signals <- os.Interrupt
	signals <- syscall.SIGTERM
	watchSignals(signals, nil, func() { first = true }, func(s os.Signal) { second = s })
	require.True(t, first)
	require.Equal(t, syscall.SIGTERM, second)
	require.Equal(t, 143, signalExit(second))
	require.Equal(t, ExitInterrupted, signalExit(os.Interrupt))

	done := make(chan struct{})
	close(done)
	watchSignals(nil, done, func() { t.Error("no signal came") }, nil)
}
