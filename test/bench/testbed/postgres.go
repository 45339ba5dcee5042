package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"superstep.dev/test/processes"
)

// PostgresSuffix ends the name of the directory of a PostgreSQL server that does not run as the user of the bench.
const PostgresSuffix = "-postgres"

// ErrNoPostgres says that there is nothing to measure with.
var ErrNoPostgres = errors.New("no initdb in PATH or /usr/lib/postgresql/*/bin: install PostgreSQL (Debian: apt-get install postgresql)")

// postgresAccepts is what PostgreSQL writes when it takes connections.
var postgresAccepts = regexp.MustCompile(`database system is ready to accept connections`)

// StartPostgres starts a PostgreSQL server with its own settings, those of durability included, on a directory of its
// own, and returns the DSN of a database that does not exist yet.
func (b *Bed) StartPostgres(ctx context.Context) (dsn string, p *processes.Process, err error) {
	initdb, server := FindPostgres("initdb"), FindPostgres("postgres")
	if initdb == "" || server == "" {
		return "", nil, ErrNoPostgres
	}
	as, dir, err := b.postgresDir()
	if err != nil {
		return "", nil, err
	}
	data, port := filepath.Join(dir, "data"), ""
	if port, err = FreePort(); err != nil {
		return "", nil, err
	}
	setup := append(as, initdb, "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	code, err := b.Processes.Run(ctx, processes.Command{Name: "initdb", Path: setup[0], Args: setup[1:], Dir: dir})
	if err == nil && code != 0 {
		err = errors.New("initdb failed:\n" + b.Processes.Tail("initdb", 40))
	}
	if err != nil {
		return "", nil, err
	}
	serve := append(as, server, "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
	p, err = b.Processes.Start(ctx, processes.Command{
		Name: "postgres", Path: serve[0], Args: serve[1:], Dir: dir, ReadyLine: postgresAccepts, StopWithin: 30 * time.Second,
	})
	return "postgres://bench@127.0.0.1:" + port + "/bench", p, err
}

// postgresDir makes a directory, and tells by which command its owner runs a program: PostgreSQL refuses root.
func (b *Bed) postgresDir() (as []string, dir string, err error) {
	if os.Geteuid() != 0 {
		dir, err = os.MkdirTemp(b.Dir, "postgres")
		return nil, dir, err
	}
	who, err := user.Lookup("nobody")
	if err != nil {
		return nil, "", fmt.Errorf("PostgreSQL does not run as root: run the bench as another user: %w", err)
	}
	// Beside the bench's own directory, which only its owner may enter.
	dir = b.Dir + PostgresSuffix
	uid, errUID := strconv.Atoi(who.Uid)
	gid, errGID := strconv.Atoi(who.Gid)
	if err := errors.Join(errUID, errGID, os.Mkdir(dir, 0o700), os.Chown(dir, uid, gid)); err != nil {
		return nil, "", err
	}
	return []string{"setpriv", "--reuid=" + who.Uid, "--regid=" + who.Gid, "--clear-groups"}, dir, nil
}

// FindPostgres returns the path of one of PostgreSQL's programs, or "".
func FindPostgres(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program) // the pattern is well formed
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// FreePort is a port of this machine that nobody listens at.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}
