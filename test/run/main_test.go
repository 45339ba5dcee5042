package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asRun makes this test binary behave as the command.
const asRun = "SUPERSTEP_TESTSERVER_AS_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asRun) != "" {
		os.Exit(run(os.Args[1:], os.Stderr))
	}
	os.Exit(m.Run())
}

func command(args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	cmd = exec.Command(os.Args[0], args...)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Env = append(os.Environ(), asRun+"=1")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

func TestRunsTheCommandUnderAServer(t *testing.T) {
	t.Parallel()
	cmd, stdout, _ := command("--", "sh", "-c", `echo "$SUPERSTEP_TEST_ADDRESS"; test -x "$SUPERSTEP_TEST_DEVSERVER" && exit 7`)
	require.Error(t, cmd.Run())
	require.Equal(t, 7, cmd.ProcessState.ExitCode())
	require.Regexp(t, `^127\.0\.0\.1:\d+\n$`, stdout)
}

func TestUsageAndCommandsThatDoNotStart(t *testing.T) {
	t.Parallel()
	cmd, _, stderr := command("--")
	require.Error(t, cmd.Run())
	require.Equal(t, 2, cmd.ProcessState.ExitCode())
	require.Equal(t, "usage: run -- COMMAND [ARGUMENT...]\n", stderr.String())

	cmd, _, _ = command("--", "no-such-command-there-is")
	require.Error(t, cmd.Run())
	require.Equal(t, 127, cmd.ProcessState.ExitCode())
}

// A signal reaches the command, and the server is gone when the command is.
func TestForwardsSignals(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/ready"
	cmd, _, stderr := command("--", "sh", "-c",
		`trap 'exit 9' TERM; echo "$SUPERSTEP_TEST_ADDRESS" > "$1.new"; mv "$1.new" "$1"; while :; do sleep 0.05; done`, "sh", file)
	require.NoError(t, cmd.Start())
	var address string
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		address = strings.TrimSpace(string(text))
		return err == nil
	}, 5*time.Minute, 20*time.Millisecond, stderr)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, 9, cmd.ProcessState.ExitCode(), stderr)
	_, err := net.DialTimeout("tcp", address, time.Second)
	require.Error(t, err, "a server at %q", address)
}
