package main_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// secret is the password of the role "guarded". It must never be printed.
const secret = "s3cr3t-w0rd"

// cluster is a PostgreSQL server of these tests' own, with the superuser "me", whom it
// trusts.
type cluster struct {
	dir     string
	program string               // the server's
	as      *syscall.SysProcAttr // who runs it
	port    int
	server  *exec.Cmd
	said    bytes.Buffer  // to be read after the server has ended
	ended   chan struct{} // closed when the server has ended
}

var theCluster struct {
	sync.Once
	*cluster
	err error
}

// postgres returns the cluster, which is made for the first test that wants it. A
// test that wants it is skipped where PostgreSQL is not installed.
func postgres(t *testing.T) *cluster {
	t.Helper()
	initdb, server := postgresPrograms(t)
	theCluster.Do(func() { theCluster.cluster, theCluster.err = startPostgres(initdb, server) })
	require.NoError(t, theCluster.err)
	return theCluster.cluster
}

// ownPostgres returns a cluster of one test alone, which may crash.
func ownPostgres(t *testing.T) *cluster {
	t.Helper()
	c, err := startPostgres(postgresPrograms(t))
	t.Cleanup(c.stop)
	require.NoError(t, err)
	return c
}

// postgresPrograms are initdb and the server. The test is skipped where they are missing.
func postgresPrograms(t *testing.T) (initdb, server string) {
	t.Helper()
	if testing.Short() {
		t.Skip("sets up a PostgreSQL, and Temporal's schema in it")
	}
	initdb, server = findPostgres("initdb"), findPostgres("postgres")
	if initdb == "" || server == "" {
		t.Skip("no initdb in PATH or /usr/lib/postgresql/*/bin: install PostgreSQL (Debian: apt-get install postgresql) to run this test")
	}
	return initdb, server
}

// findPostgres returns the path of one of PostgreSQL's programs, the newest where
// Debian has several; "" when it is not there.
func findPostgres(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program) // the pattern is well formed
	if len(found) == 0 {
		return ""
	}
	return slices.MaxFunc(found, func(a, b string) int { return len(a) - len(b) })
}

func startPostgres(initdb, server string) (*cluster, error) {
	dir, err := os.MkdirTemp("", "devserver-postgres")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, program: server}
	as, err := otherUser(dir)
	if err != nil {
		return c, err
	}
	c.as = as
	data := filepath.Join(dir, "data")
	setup := exec.Command(initdb, "-D", data, "-U", "me", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	setup.Dir, setup.SysProcAttr = dir, as
	if out, err := setup.CombinedOutput(); err != nil {
		return c, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// Whoever else connects as "guarded" has to know the password.
	access := "host all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(access), 0o600); err != nil {
		return c, err
	}
	for range 5 { // the port may be another process's
		c.port = 16_384 + rand.IntN(16_384) // below those that systems give to whoever asks for any
		if err = c.serve(); err == nil {
			return c, c.exec("postgres", "CREATE ROLE guarded LOGIN PASSWORD '"+secret+"'")
		}
	}
	return c, err
}

// serve starts the server, and returns once it takes connections. It brings to the disk as little as it may: only what commits wait for.
func (c *cluster) serve() error {
	c.server = exec.Command(c.program, "-D", filepath.Join(c.dir, "data"), "-p", strconv.Itoa(c.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "max_connections=500", "-c", "wal_writer_delay=10s", "-c", "wal_writer_flush_after=1GB")
	c.server.Dir, c.server.SysProcAttr, c.server.Stderr = c.dir, c.as, &c.said
	if err := c.server.Start(); err != nil {
		return err
	}
	c.ended = make(chan struct{})
	go func() {
		_ = c.server.Wait() // whoever sees it end asks for what it said
		close(c.ended)
	}()
	return c.await()
}

// otherUser gives dir to a user who is not root, as whom PostgreSQL then runs: it
// refuses root. Somebody who is not root stays who they are.
func otherUser(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // no attributes are what such a process needs
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		if who, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, errUID := strconv.ParseUint(who.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(who.Gid, 10, 32)
	if errUID != nil || errGID != nil {
		return nil, fmt.Errorf("user %s has the ids %s and %s", who.Username, who.Uid, who.Gid)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}},
		os.Chown(dir, int(uid), int(gid))
}

// await waits until the server takes connections.
func (c *cluster) await() error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := c.exec("postgres", "SELECT 1")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-c.ended:
			return fmt.Errorf("postgres has ended: %s", &c.said)
		case <-time.After(poll): // between two tries
		}
	}
}

func (c *cluster) dsn(role, database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s", role, c.port, database)
}

// exec executes a statement as the superuser.
func (c *cluster) exec(database, statement string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.dsn("me", database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// crash ends the server as a crash does, without a checkpoint, and starts it again.
func (c *cluster) crash(t *testing.T) {
	t.Helper()
	require.NoError(t, c.server.Process.Signal(syscall.SIGQUIT))
	<-c.ended
	require.NoError(t, c.serve())
}

// stopPostgres ends the cluster that tests share, if there is one.
func stopPostgres() {
	if c := theCluster.cluster; c != nil {
		c.stop()
	}
}

// stop ends the cluster at once: nobody needs what it has.
func (c *cluster) stop() {
	if c == nil {
		return
	}
	if c.ended != nil {
		_ = c.server.Process.Signal(syscall.SIGQUIT) // fails if it has ended, which is fine
		<-c.ended
	}
	_ = os.RemoveAll(c.dir)
}

var databases atomic.Int64

// newDatabase is the name of a database that does not exist yet.
func newDatabase() string { return fmt.Sprintf("runs%d", databases.Add(1)) }
