package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// The environment by which one server, and one binary, serve several test processes.
const (
	// EnvAddress holds the host:port of a server that is already there.
	EnvAddress = "SUPERSTEP_TEST_ADDRESS"
	// EnvBinary holds the path of a devserver binary, so that nobody builds it again.
	EnvBinary = "SUPERSTEP_TEST_DEVSERVER"
)

// lockPoll is the time between two tries to take a lock.
const lockPoll = 50 * time.Millisecond

// devserverModule is the server's Go module. Only a workspace that has its source builds it.
const devserverModule = "superstep.dev/devserver"

// ErrNoSource says that this process is not inside the workspace that holds the servers' source, so that it cannot
// build one.
var ErrNoSource = errors.New("the source of " + devserverModule + " is not in this workspace")

// binary builds the devserver once per process.
var binary = sync.OnceValues(func() (string, error) { return Binary(os.Stderr) })

// Binary returns the path of a devserver binary: that of EnvBinary, or bin/devserver of the workspace after building
// it there, which takes a second when nothing changed. It is built without the race detector whatever the tests run
// with: the server would be many times slower. Before building it says on log how long that may take.
func Binary(log io.Writer) (string, error) {
	if path := os.Getenv(EnvBinary); path != "" {
		return path, nil
	}
	source, err := sourceOf(devserverModule)
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(source), "bin", "devserver")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("make a place for the server's binary: %w", err)
	}
	lock := flock.New(path + ".lock") // of several test processes one builds
	if _, err := lock.TryLockContext(context.Background(), lockPoll); err != nil {
		return "", fmt.Errorf("wait for another build of the server: %w", err)
	}
	defer func() { _ = lock.Unlock() }() // it ends with the process at the latest
	fmt.Fprintln(log, "compiling the Temporal server: four to seven minutes the first time")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "GOFLAGS="+withoutRace(os.Getenv("GOFLAGS")))
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the Temporal server: %w\n%s", err, out)
	}
	return path, nil
}

// mainModule is the module of this repository. The servers of others that tests need are built from modules below it.
const mainModule = "superstep.dev"

// toolBinary returns the path of a program of others, bin/NAME of the workspace after building it there from a module in dir. Before it
// compiles it says on stderr what, and how long that takes.
func toolBinary(name, dir, pkg, what string) (string, error) {
	source, err := sourceOf(mainModule)
	if err != nil {
		return "", err
	}
	path := filepath.Join(source, "bin", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	lock := flock.New(path + ".lock") // of several test processes one builds
	if _, err := lock.TryLockContext(context.Background(), lockPoll); err != nil {
		return "", fmt.Errorf("wait for another build of %s: %w", name, err)
	}
	defer func() { _ = lock.Unlock() }()
	fmt.Fprintf(os.Stderr, "compiling %s the first time\n", what)
	build := exec.Command("go", "build", "-o", path, pkg)
	build.Dir = filepath.Join(source, dir)
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS="+withoutRace(os.Getenv("GOFLAGS")))
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// sourceOf returns the directory of a module of the workspace.
func sourceOf(module string) (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{if .Main}}{{.Dir}}{{end}}", module).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", ErrNoSource
	}
	return dir, nil
}

func withoutRace(flags string) string {
	var kept []string
	for _, f := range strings.Fields(flags) {
		if f != "-race" && f != "-race=true" {
			kept = append(kept, f)
		}
	}
	return strings.Join(kept, " ")
}
