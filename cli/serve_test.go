package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without authentication nobody but this machine may reach the server, whatever name or address is asked for.
func TestServeListensOnLoopbackOnly(t *testing.T) {
	for address, allowed := range map[string]bool{
		"127.0.0.1:2024": true, "127.9.9.9:0": true, "localhost:2024": true, "[::1]:2024": true,
		"0.0.0.0:2024": false, ":2024": false, "[::]:2024": false, "10.0.0.7:2024": false, "example.org:2024": false,
		"localhost.example.org:2024": false, "2024": false, "127.0.0.1": false, "": false,
	} {
		a, _, stderr := testApp(t, &script{}, "{}")
		if !allowed {
			require.Equal(t, ExitUsage, a.run(t.Context(), []string{"serve", "--listen", address}), address)
			require.Contains(t, stderr.String(), "--listen", address)
			continue
		}
		require.NoError(t, checkListen(address), address)
	}
}

// The examples of help are command lines that the command takes.
func TestServeExamples(t *testing.T) {
	a, _, _ := testApp(t, &script{}, "{}")
	cmd := operating{a}.serveCommand()
	for line := range strings.Lines(cmd.Example) {
		words := strings.Fields(line)
		require.Equal(t, []string{"superstep", "serve"}, words[:2])
		require.NoError(t, cmd.ParseFlags(words[2:]), line)
	}
}
