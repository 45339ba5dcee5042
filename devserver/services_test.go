package main_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// The services of the server call each other in process; on stock settings they do so over loopback, as they do on a cluster.
func TestServicesCallEachOtherInProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("connections are listed in /proc")
	}
	for _, stock := range []bool{false, true} {
		t.Run(fmt.Sprintf("stock=%t", stock), func(t *testing.T) {
			t.Parallel()
			s := start(t, filepath.Join(t.TempDir(), "runs.db"), "--headless", "--live", "none", fmt.Sprintf("--stock=%t", stock))
			_, err := dial(t, s.address).ExecuteWorkflow(within(t, startTimeout), client.StartWorkflowOptions{ID: "r-1", TaskQueue: "q"}, "anything")
			require.NoError(t, err)
			if calls := callsItself(t, s); stock {
				require.NotZero(t, calls)
			} else {
				require.Zero(t, calls)
			}
			require.Zero(t, s.stop(t))
		})
	}
}

// callsItself counts the connections from the server to ports of its own, but for that of the frontend.
func callsItself(t *testing.T, s *running) int {
	t.Helper()
	_, frontend, err := net.SplitHostPort(s.address)
	require.NoError(t, err)
	var listening, connected = map[string]bool{}, []string{}
	for _, c := range connections(t, s.cmd.Process.Pid) {
		switch c.state {
		case "0A":
			listening[c.local] = true
		case "01":
			connected = append(connected, c.remote)
		}
	}
	delete(listening, frontend)
	require.NotEmpty(t, listening)
	count := 0
	for _, port := range connected {
		if listening[port] {
			count++
		}
	}
	return count
}

// connection is a line of /proc/net/tcp: ports, and the state in hexadecimal digits, 0A for one that listens and 01 for an open one.
type connection struct{ local, remote, state string }

// connections lists those of a process.
func connections(t *testing.T, pid int) []connection {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	own := map[string]bool{}
	for _, f := range files {
		target, _ := os.Readlink(filepath.Join(folder, f.Name())) // "socket:[inode]"; one that was closed meanwhile has none
		own[strings.Trim(strings.TrimPrefix(target, "socket:"), "[]")] = true
	}
	list, err := os.Open(fmt.Sprintf("/proc/%d/net/tcp", pid))
	require.NoError(t, err)
	defer list.Close()
	var found []connection
	for lines := bufio.NewScanner(list); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 9 && own[f[9]] {
			found = append(found, connection{local: portOf(t, f[1]), remote: portOf(t, f[2]), state: f[3]})
		}
	}
	return found
}

// portOf reads an address as the kernel writes it, "0100007F:1C41".
func portOf(t *testing.T, address string) string {
	t.Helper()
	_, digits, _ := strings.Cut(address, ":")
	port, err := strconv.ParseUint(digits, 16, 16)
	require.NoError(t, err)
	return strconv.FormatUint(port, 10)
}
