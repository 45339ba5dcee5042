package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/test/processes/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

// launch starts everything on free ports, and returns once it runs.
func launch(t *testing.T, dir string) *programtest.Program {
	t.Helper()
	p := programtest.Launch(t, dir, nil, "--any-port", "--dir", dir)
	p.Until(t, `(?m)^Ctrl-C stops everything\.$`)
	return p
}

func TestDevStaysUntilCtrlC(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second time on what the first one left
		p := launch(t, dir)
		require.Len(t, p.Processes(t), 4, "the server, the payments service and two workers")
		address := p.Until(t, `(?m)^devserver (\S+)   web UI http://\S+   payments http://\S+$`)[1]
		p.Signal(t, syscall.SIGINT)
		code, screen := p.End(t)
		require.Zero(t, code, screen)
		require.Contains(t, screen, "\n  go run ./starter refund --thread r-7 --input '{\"order_id\":\"o-7\"}' --address "+address+"\n")
		require.Contains(t, screen, "\n  go run ./starter --thread r-7 --approve --key "+filepath.Join(dir, "approval.key")+" --address "+address+"\n")
		require.Regexp(t, `(?m)^worker-1  \| worker ready `, screen)
		require.Regexp(t, `(?s)worker-2  \| worker drained.*worker-1  \| worker drained.*payments  \| .*payments stopping.*stopped; runs and refunds are kept`, screen)
		require.NotContains(t, screen, "\x1b")
		require.Empty(t, p.Processes(t))
		require.FileExists(t, filepath.Join(dir, "superstep.db"))
	}
}

func TestDevEndsWithAProcessThatDies(t *testing.T) {
	p := launch(t, t.TempDir())
	p.Kill(t, "/worker-2.ready")
	code, screen := p.End(t)
	require.Equal(t, 1, code, screen)
	require.Contains(t, screen, "\ndev: worker-2 ended by itself (signal: killed); the end of ")
	require.Empty(t, p.Processes(t))
}

func TestDevRefusesToServeNothing(t *testing.T) {
	require.Equal(t, 2, run([]string{"--workers", "0"}))
}
