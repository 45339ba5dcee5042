package main

import (
	"bufio"
	"bytes"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What suites write is read, theirs and a kit's, and a reason that a kill explains is told from any other.
func TestResults(t *testing.T) {
	all, err := results(strings.NewReader("ok   a: b (1.2 s)\nnoise\n" +
		"FAIL shared  ask/two (0.0 s): stopped at ask.py:43: RemoteProtocolError: Server disconnected\n" +
		"FAIL x (3.0 s): got 1, want 2\nok   heldout y (12.0 s)\n3 of 4 scenarios pass\nFAIL z (0.1 s)\n"))
	require.NoError(t, err)
	require.Equal(t, []result{{"a: b", ""}, {"ask/two", "stopped at ask.py:43: RemoteProtocolError: Server disconnected"},
		{"x", "got 1, want 2"}, {"y", ""}, {"z", "no reason given"}}, all)
	require.True(t, failed(all))
	require.True(t, cut.MatchString(all[1].why))
	require.False(t, cut.MatchString(all[2].why))
}

func TestOptions(t *testing.T) {
	for _, args := range []string{"-store mysql", "-rounds 0", "-kill 1s", "-kill -1s", "-except (", "more"} {
		var stderr bytes.Buffer
		require.Equal(t, 2, execute(strings.Fields(args), nil, &stderr), args)
		require.NotEmpty(t, stderr.String(), args)
	}
	o, err := parse([]string{"-kill", "20s", "-rounds", "2", "-store", "postgres", "-except", "^slow"}, nil)
	require.NoError(t, err)
	require.Equal(t, []any{20 * time.Second, 2, "postgres", true}, []any{o.kill, o.rounds, o.store, o.except.MatchString("slow one")})
}

// Where there is no Python nothing is tested, which is said and no failure.
func TestNothingToTestWith(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := exec.LookPath("python3")
	require.Error(t, err)
	var stderr bytes.Buffer
	require.Zero(t, execute(nil, nil, &stderr))
	require.Contains(t, stderr.String(), "skipped: there is no python3")
}

// Who connects while no server is there is served by the next one.
func TestFrontWaitsForTheServer(t *testing.T) {
	f, err := newFront()
	require.NoError(t, err)
	t.Cleanup(f.close)
	for _, word := range []string{"first\n", "second\n"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		require.NoError(t, err)
		server, err := net.Listen("tcp", f.behind)
		require.NoError(t, err)
		behind, err := server.Accept()
		require.NoError(t, err)
		_, err = behind.Write([]byte(word))
		require.NoError(t, err)
		got, err := bufio.NewReader(c).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, word, got)
		require.NoError(t, behind.Close())
		require.NoError(t, server.Close())
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err, "it ends with the server")
		require.NoError(t, c.Close())
	}
}
