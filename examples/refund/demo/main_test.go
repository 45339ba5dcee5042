package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/test/processes/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

// launch starts a demo that answers by itself, on free ports. It shows how often each node ran: a busy machine must not lose a worker. What a user has set for another server, or another
// limit, must not reach it.
func launch(t *testing.T) (p *programtest.Program, dir string) {
	t.Helper()
	dir = t.TempDir()
	return programtest.Launch(t, dir, []string{"YES=1", "TEMPORAL_ADDRESS=127.0.0.1:1", "TEMPORAL_API_KEY=none",
		"PAYMENTS_URL=http://127.0.0.1:1", "REFUND_LIMIT=1"}, "--any-port", "--lost-after", "8s", "--dir", dir), dir
}

// requireGone checks that a demo left neither processes nor data.
func requireGone(t *testing.T, p *programtest.Program, dir string) {
	t.Helper()
	require.Empty(t, p.Processes(t))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDemo(t *testing.T) {
	p, dir := launch(t)
	code, screen := p.End(t)
	require.Zero(t, code, screen)
	t.Logf("the screen:\n%s", screen)
	lines := strings.Split(strings.TrimSpace(screen), "\n")
	require.Equal(t, "demo: OK, exactly one refund", lines[len(lines)-1])
	for _, line := range lines {
		require.LessOrEqual(t, len([]rune(line)), 100, line)
	}
	require.NotContains(t, screen, "\x1b")
	for _, pattern := range []string{
		`(?m)^devserver 127\.0\.0\.1:\d+   web UI http://127\.0\.0\.1:\d+   payments 127\.0\.0\.1:\d+$`,
		`(?m)^     step 3  approval       WAITING    q-\w+  Refund 250\.00 to order o-1042\?$`,
		`(?m)^     kill -9 \d+ +payments has committed and has not replied$`,
		`(?m)^     step 4  commit_refund  attempt 2: intent → lookup after crash → committed rf-1; not sent again$`,
		`(?m)^     ledger            1 refund: rf-1  250\.00  key \w{8}   \(1 refund request, 1 lookup\)$`,
		`(?m)^     ran again         commit_refund \(attempt 2\)$`,
		`(?m)^     ran once          read_order, calculate, approval \(and once to ask\), notify$`,
	} {
		require.Regexp(t, pattern, screen)
	}
	requireGone(t, p, dir)
}

func TestInterruptedDemoLeavesNothing(t *testing.T) {
	p, dir := launch(t)
	p.Until(t, `(?m)^worker #1 pid \d+$`)
	require.GreaterOrEqual(t, len(p.Processes(t)), 3, "the server, the payments service and a worker")
	p.Signal(t, syscall.SIGINT)
	code, screen := p.End(t)
	require.Equal(t, 128+int(syscall.SIGINT), code, screen)
	requireGone(t, p, dir)
}

// A demo that is killed can clean up nothing itself. It may leave its data.
func TestKilledDemoLeavesNoProcess(t *testing.T) {
	p, _ := launch(t)
	p.Until(t, `(?m)^   \$ superstep run refund`)
	p.Signal(t, syscall.SIGKILL)
	p.End(t)
	require.Eventually(t, func() bool { return len(p.Processes(t)) == 0 }, time.Minute, 20*time.Millisecond)
}

func TestFailedDemoSaysWhyAndKeepsTheLogs(t *testing.T) {
	p, _ := launch(t)
	p.Until(t, `(?m)^worker #1 pid \d+$`)
	p.Kill(t, "/payments.db")
	code, screen := p.End(t)
	require.Equal(t, 1, code, screen)
	require.Contains(t, screen, "\ndemo: FAILED: payments ended by itself (signal: killed); the end of ")
	logs := p.Until(t, `(?m)^The logs are in (.+)$`)[1]
	require.FileExists(t, logs+"/payments.log")
	require.Empty(t, p.Processes(t))
}
