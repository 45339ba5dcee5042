package testserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// StartPooler starts a PgBouncer in front of a server, which gives each transaction another connection, and ends it at the test's end. It
// returns how to reach a database through it. A test is skipped where PgBouncer is not installed.
func StartPooler(t testing.TB, p *Postgres) (dsn func(database string) string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // not in everybody's PATH
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("no pgbouncer in PATH or /usr/sbin: install PgBouncer (Debian: apt-get install pgbouncer) to run this test")
	}
	port := freePort()
	file := filepath.Join(p.dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=me\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%d\nunix_socket_dir=\n"+
		"auth_type=any\npool_mode=transaction\ndefault_pool_size=3\nserver_round_robin=1\n", p.port, port)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	running, err := spawn(p.command(program, file), p.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.kill(); err != nil {
			t.Errorf("end the pooler: %v", err)
		}
	})
	if err := awaitPort(port, running); err != nil {
		t.Fatalf("%v\n%s", err, running.output)
	}
	return func(database string) string {
		return fmt.Sprintf("postgres://me@127.0.0.1:%d/%s?sslmode=disable", port, database)
	}
}

// awaitPort returns when a process listens at a port of this machine.
func awaitPort(port int, c *child) error {
	deadline := time.Now().Add(startTimeout)
	for {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		switch {
		case err == nil:
			return conn.Close()
		case c.over():
			return errors.New("the process has ended")
		case time.Now().After(deadline):
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
