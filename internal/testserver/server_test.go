package testserver_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev/internal/testserver"
)

// childMode makes this test binary start the shared server, print its address, and end as the mode says.
const childMode = "SUPERSTEP_TESTSERVER_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		asChild(mode)
	}
	os.Exit(m.Run())
}

func asChild(mode string) {
	address, err := testserver.Shared()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(address)
	switch mode {
	case "exit":
		os.Exit(0)
	case "panic":
		panic("ends in a panic")
	default:
		select {} // until it is killed
	}
}

// healthy reports whether a server serves at an address, one that is there within a minute.
func healthy(ctx context.Context, address string) error { return serves(ctx, address, time.Minute) }

// gone is that of a server that is to be there no more, of which nothing is waited for.
func gone(ctx context.Context, address string) bool {
	return serves(ctx, address, 3*time.Second) != nil
}

func serves(ctx context.Context, address string, within time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c, err := client.DialContext(bounded, client.Options{HostPort: address})
	if err != nil {
		return err
	}
	c.Close()
	return nil
}

func TestAddressIsShared(t *testing.T) {
	address := testserver.Address(t)
	require.NoError(t, healthy(t.Context(), address))
	require.Equal(t, address, testserver.Address(t))
}

func TestQueueIsUnique(t *testing.T) {
	t.Run("a name/with 'odd' parts", func(t *testing.T) {
		require.NotEqual(t, testserver.Queue(t), testserver.Queue(t))
		require.Regexp(t, `^TestQueueIsUnique-a_name-with_-odd-_parts-[a-z2-7]{8}$`, testserver.Queue(t))
	})
}

func TestStopAndKillKeepAddressAndFile(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "mine.db")
	s := testserver.Start(t, testserver.Options{DB: db})
	address := s.Address()
	for _, end := range []func() error{s.Kill, s.Stop} {
		require.NoError(t, healthy(t.Context(), address))
		require.NoError(t, end())
		require.True(t, gone(t.Context(), address))
		require.NoError(t, end(), "ending what has ended is no error")
		require.FileExists(t, db)
		require.NoError(t, s.Restart())
		require.Equal(t, address, s.Address())
	}
	require.NoError(t, healthy(t.Context(), address))
	require.ErrorContains(t, s.Restart(), "it runs")
}

// However a test process ends, its server and the server's directory go with it.
func TestServerEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exit", "panic", "kill"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childMode+"="+mode, testserver.EnvAddress+"=", "TMPDIR="+temp)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, err)
			if mode == "kill" {
				require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
			}
			_ = cmd.Wait() // ended as the mode says
			require.Eventually(t, func() bool {
				left, err := filepath.Glob(filepath.Join(temp, "superstep-testserver-*"))
				return err == nil && len(left) == 0 && gone(t.Context(), strings.TrimSpace(line))
			}, 2*time.Minute, 50*time.Millisecond)
		})
	}
}
