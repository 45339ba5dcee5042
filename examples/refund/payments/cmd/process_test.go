package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
)

const (
	waitLimit = 2 * time.Minute
	pollEvery = 5 * time.Millisecond
)

// binary builds the command once for all tests of the package.
var binary = sync.OnceValues(func() (string, error) {
	name := filepath.Join(buildDir, "payments")
	out, err := exec.Command("go", "build", "-o", name, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return name, nil
})

var buildDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "payments-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is one running service.
type process struct {
	*payments.Client
	cmd    *exec.Cmd
	addr   string
	ready  string
	log    *bytes.Buffer // to be read after wait
	exited chan struct{}
	err    error // how it exited; set before exited is closed
}

// start runs the command on the database and waits until it serves.
func start(t *testing.T, db string) *process {
	t.Helper()
	name, err := binary()
	require.NoError(t, err)
	p := &process{ready: filepath.Join(t.TempDir(), "ready"), log: &bytes.Buffer{}, exited: make(chan struct{})}
	p.cmd = exec.Command(name, "--addr", "127.0.0.1:0", "--db", db, "--ready-file", p.ready)
	p.cmd.Stderr = p.log
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
	})
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(p.ready)
		p.addr = strings.TrimSpace(string(text))
		return err == nil
	}, waitLimit, pollEvery)
	p.Client, err = payments.NewClient("http://" + p.addr)
	require.NoError(t, err)
	return p
}

// wait returns the exit status.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(waitLimit):
		require.Fail(t, "the process does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// The case the example is about: the money has moved, the process is gone, and
// the caller was told nothing. Asking by the key settles it.
func TestDieAfterCommit(t *testing.T) {
	db := filepath.Join(t.TempDir(), "p.db")
	first := start(t, db)
	require.NoError(t, first.SetFaults(t.Context(), payments.Faults{DieAfterCommit: 1}))
	want := payments.Refund{OrderID: "o-1042", Amount: 25_000}
	_, err := first.Refund(t.Context(), "5f0c91", want)
	var away *payments.UnavailableError
	require.ErrorAs(t, err, &away)
	require.Equal(t, payments.FaultExitCode, first.wait(t))

	second := start(t, db)
	receipt, found, err := second.FindRefund(t.Context(), "5f0c91")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, want, payments.Refund{OrderID: receipt.OrderID, Amount: receipt.Amount})
	stats, err := second.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, payments.KeyTraffic{Requests: 1, Lookups: 1, Committed: 1}, stats.Refunds.ByKey["5f0c91"])

	// The fault is spent: the next refund does not kill the process again.
	_, err = second.Refund(t.Context(), "next", payments.Refund{OrderID: "o-7", Amount: 1})
	require.NoError(t, err)
	again, err := second.Refund(t.Context(), "5f0c91", want)
	require.NoError(t, err)
	require.Equal(t, receipt, again)
}

// A refund is durable before a hang, so killing the process loses nothing.
func TestKillWhileHanging(t *testing.T) {
	db := filepath.Join(t.TempDir(), "p.db")
	first := start(t, db)
	require.NoError(t, first.SetFaults(t.Context(), payments.Faults{HangAfterCommit: 1}))
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := first.Refund(ctx, "k", payments.Refund{OrderID: "o-7", Amount: 1})
		failed <- err
	}()
	require.Eventually(t, func() bool {
		stats, err := first.Stats(ctx)
		return err == nil && stats.Refunds.Committed == 1
	}, waitLimit, pollEvery)
	require.NoError(t, first.cmd.Process.Kill())
	require.Error(t, <-failed)
	first.wait(t)

	_, found, err := start(t, db).FindRefund(t.Context(), "k")
	require.NoError(t, err)
	require.True(t, found)
}

func TestCleanStop(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			p := start(t, filepath.Join(t.TempDir(), "p.db"))
			require.NoError(t, p.SetFaults(t.Context(), payments.Faults{HangAfterCommit: 1}))
			failed := make(chan error, 1)
			go func() {
				_, err := p.Refund(t.Context(), "k", payments.Refund{OrderID: "o-7", Amount: 1})
				failed <- err
			}()
			require.Eventually(t, func() bool {
				stats, err := p.Stats(t.Context())
				return err == nil && stats.Refunds.Committed == 1
			}, waitLimit, pollEvery)
			require.NoError(t, p.cmd.Process.Signal(signal))
			require.Zero(t, p.wait(t), p.log)
			require.Error(t, <-failed, "a hanging request is dropped, not answered")
			require.NoFileExists(t, p.ready)
		})
	}
}

func TestHealthcheck(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "p.db"))
	check := func() (string, error) {
		out, err := exec.Command(p.cmd.Path, "healthcheck", "--addr", p.addr, "--timeout", "1m").CombinedOutput()
		return string(out), err
	}
	out, err := check()
	require.NoError(t, err, out)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.wait(t)
	out, err = check()
	require.Error(t, err)
	require.Contains(t, out, "not healthy")
}

// What a person gets wrong ends in one line that says what, and status 1.
func TestStartFailures(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "p.db"))
	unwritable := filepath.Join(t.TempDir(), "absent", "file")
	db := filepath.Join(t.TempDir(), "q.db")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"port in use":   {[]string{"--addr", p.addr, "--db", db}, "address already in use"},
		"bad address":   {[]string{"--addr", "nowhere", "--db", db}, "missing port"},
		"no directory":  {[]string{"--addr", "127.0.0.1:0", "--db", unwritable}, unwritable},
		"ready file":    {[]string{"--addr", "127.0.0.1:0", "--db", db, "--ready-file", unwritable}, unwritable},
		"unknown flag":  {[]string{"--adress", "x"}, "unknown flag"},
		"stray operand": {[]string{"serve"}, "serve"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(p.cmd.Path, c.args...).CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode())
			require.Contains(t, string(out), c.want)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			require.Contains(t, lines[len(lines)-1], c.want)
		})
	}
}

func TestHelpTeaches(t *testing.T) {
	name, err := binary()
	require.NoError(t, err)
	out, err := exec.Command(name, "--help").CombinedOutput()
	require.NoError(t, err)
	for _, want := range []string{"Idempotency-Key", "die_after_commit", "--ready-file", "healthcheck", "o-1042", "curl"} {
		require.Contains(t, string(out), want)
	}
}
