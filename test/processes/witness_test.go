package processes_test

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds waits that take milliseconds, on a machine that is busy with other things.
const patience = 2 * time.Minute

// witness sees processes come and go by their connections to it. Nothing else tells the end of a process that is
// nobody's child.
type witness struct {
	listener net.Listener
	present  map[string]net.Conn
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return &witness{listener: l, present: map[string]net.Conn{}}
}

func (w *witness) env() string { return envWitness + "=" + w.listener.Addr().String() }

// sees returns once processes of these roles are there.
func (w *witness) sees(t *testing.T, roles ...string) {
	t.Helper()
	for range roles {
		require.NoError(t, w.listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
		conn, err := w.listener.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		name, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		w.present[name[:len(name)-1]] = conn
	}
	for _, role := range roles {
		require.Contains(t, w.present, role)
	}
}

// seesEnd returns once the process of a role has ended.
func (w *witness) seesEnd(t *testing.T, role string) {
	t.Helper()
	conn := w.present[role]
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	timeout, ok := err.(net.Error)
	require.False(t, ok && timeout.Timeout(), "%s still runs", role)
}
