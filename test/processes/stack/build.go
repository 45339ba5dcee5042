package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"superstep.dev/test/processes"
)

// Programs are the paths of this repository's programs. Payments and Service are "" for an example that has no use for them.
type Programs struct {
	Devserver, Payments, Worker, Superstep, Service string
}

// What [Build] builds for the examples, in that order.
var (
	Refund   = []string{"devserver", "payments", "worker", "superstep"}
	Research = []string{"devserver", "research", "superstep"}
	// Agents is the worker and server of the graphs that clients of the agent server's protocol are tested with.
	Agents = []string{"devserver", "agents"}
	Chat   = []string{"devserver", "payments", "chat-worker", "chat-service"}
)

// sources are their packages, from the root of the repository.
var sources = map[string]string{
	"devserver": "devserver", "payments": "examples/refund/payments/cmd", "worker": "worker", "superstep": "cmd/superstep",
	"research": "examples/research/cmd", "agents": "test/serve",
	"chat-worker": "examples/chat/worker", "chat-service": "examples/chat/service",
}

// Root returns the directory of the repository, which the working directory must be in.
func Root(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "superstep.dev")
	out, err := cmd.Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return "", fmt.Errorf("find this repository: run it with Go installed, inside the repository: %w", err)
	}
	if _, err := os.Stat(filepath.Join(root, "devserver", "go.mod")); err != nil {
		return "", fmt.Errorf("find the server's source: run it inside a clone of the whole repository: %w", err)
	}
	return root, nil
}

// Build builds the programs into the repository's directory bin, which takes minutes when the Temporal server was
// never compiled and seconds when nothing changed, and returns copies in dir, which later builds leave alone. It builds
// as go build and go test do, so the build cache serves them all; the race detector is left out, as the server would be
// many times slower. names are [Refund], [Research], [Agents] or [Chat]. on is told of each program before it is built; it may be nil.
func Build(ctx context.Context, set *processes.Set, root, dir string, names []string, on func(name string)) (Programs, error) {
	b := build{set: set, root: root, dir: dir}
	paths := map[string]string{}
	for _, name := range names {
		if on != nil {
			on(name)
		}
		path, err := b.program(ctx, name)
		if err != nil {
			return Programs{}, fmt.Errorf("build %s: %w", name, err)
		}
		paths[name] = path
	}
	return Programs{Devserver: paths["devserver"], Payments: paths["payments"], Worker: cmp.Or(paths["worker"], paths["research"], paths["agents"], paths["chat-worker"]),
		Superstep: paths["superstep"], Service: paths["chat-service"]}, nil
}

type build struct {
	set       *processes.Set
	root, dir string
}

// program builds one program and returns the path of its copy.
func (b *build) program(ctx context.Context, name string) (path string, err error) {
	built := filepath.Join(b.root, "bin", name)
	work := filepath.Join(b.dir, "build") // on the disk of the result, so that go build moves it there in one step
	for _, dir := range []string{filepath.Dir(built), work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	unlock, err := lock(ctx, built+".lock")
	if err != nil {
		return "", fmt.Errorf("wait for another build: %w", err)
	}
	defer unlock()
	code, err := b.set.Run(ctx, processes.Command{
		Name: "build", Path: "go", Args: []string{"build", "-o", built, "."},
		Dir: filepath.Join(b.root, filepath.FromSlash(sources[name])), Env: buildEnv(work),
	})
	if err != nil {
		return "", err
	}
	if code != 0 {
		return "", errors.New("go build failed:\n" + b.set.Tail("build", shownLines))
	}
	return b.copy(built, name)
}

const shownLines = 40

// lock waits until no other process holds the lock on a file, and takes it: of several that build one program, one does. The
// lock ends with the process.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	const poll = 50 * time.Millisecond
	file := flock.New(path)
	if _, err := file.TryLockContext(ctx, poll); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return func() { _ = file.Unlock() }, nil
}

// copy gives the program a second name, under which it stays when it is built again.
func (b *build) copy(built, name string) (string, error) {
	path := filepath.Join(b.dir, name)
	if err := os.RemoveAll(path); err != nil {
		return "", err
	}
	if os.Link(built, path) == nil {
		return path, nil
	}
	return path, copyFile(path, built) // another disk, or one without links
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// buildEnv is this process's environment without the race detector.
func buildEnv(work string) []string {
	var flags []string
	for _, flag := range strings.Fields(os.Getenv("GOFLAGS")) {
		if flag != "-race" && flag != "-race=true" {
			flags = append(flags, flag)
		}
	}
	return append(os.Environ(), "GOFLAGS="+strings.Join(flags, " "), "GOTMPDIR="+work)
}
