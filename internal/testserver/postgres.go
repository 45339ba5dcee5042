package testserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Postgres is a PostgreSQL server of a test's own: a process that can be killed. Its address and what it keeps stay the same over a new
// start. Its methods are not for concurrent use.
type Postgres struct {
	dir, server string
	as          []string
	port        int
	child       *child
}

// StartPostgres starts a PostgreSQL server, whose superuser "me" needs no password, and ends it at the test's end. A test is skipped where
// PostgreSQL is not installed.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	initdb, server := findPostgres("initdb"), findPostgres("postgres")
	if initdb == "" || server == "" {
		t.Skip("no initdb in PATH or /usr/lib/postgresql/*/bin: install PostgreSQL (Debian: apt-get install postgresql) to run this test")
	}
	p, err := newPostgres(initdb, server)
	if err != nil {
		t.Fatalf("a PostgreSQL server for this test: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the PostgreSQL server at port %d wrote:\n%s", p.port, p.child.output)
		}
		if err := errors.Join(p.Kill(), os.RemoveAll(p.dir)); err != nil {
			t.Errorf("end the PostgreSQL server: %v", err)
		}
	})
	return p
}

// DSN is how to reach a database of the server; "postgres" is one that is there.
func (p *Postgres) DSN(database string) string {
	return fmt.Sprintf("postgres://me@127.0.0.1:%d/%s", p.port, database)
}

// findPostgres returns the path of one of PostgreSQL's programs, the newest where Debian has several; "" when it is not there.
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

func newPostgres(initdb, server string) (*Postgres, error) {
	dir, err := os.MkdirTemp("", "superstep-postgres")
	if err != nil {
		return nil, err
	}
	p := &Postgres{dir: dir, server: server}
	if p.as, err = otherUser(dir); err != nil {
		return nil, err
	}
	setup := p.command(initdb, "-D", filepath.Join(dir, "data"), "-U", "me", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	if out, err := setup.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for range 3 { // the port may be another process's
		p.port = freePort()
		if err = p.Restart(); err == nil {
			return p, nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// otherUser gives dir to a user who is not root, as whom PostgreSQL then runs: it refuses root. Somebody who is not root stays who they are.
func otherUser(dir string) (as []string, err error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	who, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, errUID := strconv.Atoi(who.Uid)
	gid, errGID := strconv.Atoi(who.Gid)
	return []string{"setpriv", "--reuid=" + who.Uid, "--regid=" + who.Gid, "--clear-groups"}, errors.Join(errUID, errGID, os.Chown(dir, uid, gid))
}

func (p *Postgres) command(path string, args ...string) *exec.Cmd {
	all := append(slices.Clone(p.as), append([]string{path}, args...)...)
	cmd := exec.Command(all[0], all[1:]...)
	cmd.Dir = p.dir
	return cmd
}

// Kill ends the server as a crash does (SIGKILL). What it acknowledged is in its directory.
func (p *Postgres) Kill() error {
	if p.child == nil {
		return nil
	}
	return p.child.kill()
}

// Restart starts the server on its directory and its address, and returns once it takes connections.
func (p *Postgres) Restart() error {
	deadline := time.Now().Add(startTimeout)
	for {
		ended, err := p.start(deadline)
		// Processes of a server that was killed may still be ending, and keep the directory to themselves.
		if err == nil || !ended || time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// start starts the server once, and reports whether it ended by itself.
func (p *Postgres) start(deadline time.Time) (ended bool, err error) {
	cmd := p.command(p.server, "-D", filepath.Join(p.dir, "data"), "-p", strconv.Itoa(p.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "max_connections=300")
	if p.child, err = spawn(cmd, p.dir); err != nil {
		return false, err
	}
	for {
		if c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))); err == nil {
			return false, c.Close()
		}
		select {
		case <-p.child.exited:
			return true, fmt.Errorf("the PostgreSQL server ended: %s\n%s", p.child.cmd.ProcessState, p.child.output)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return false, errors.Join(fmt.Errorf("the PostgreSQL server does not serve after %v\n%s", startTimeout, p.child.output), p.child.kill())
		}
	}
}
