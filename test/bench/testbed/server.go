package testbed

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
	"superstep.dev/thread/storage"
)

// Bed is what servers are started on.
type Bed struct {
	Processes *processes.Set
	// Dir is for databases, and goes with the bench.
	Dir string
	// Notes are for people.
	Notes io.Writer
	// Devserver is the path of the devserver; "" until it is built.
	Devserver string
}

// How long the devserver may take on a busy machine. A start is a matter of one to three seconds on an idle one.
const (
	serverStart = 5 * time.Minute
	serverStop  = time.Minute
)

// Server is a devserver on a database file of its own.
type Server struct {
	Address string
	// Dir is where it runs: a database file of its own lies there.
	Dir     string
	Process *processes.Process
}

// StartServer starts a devserver; stock leaves Temporal's settings as they are.
func (b *Bed) StartServer(ctx context.Context, stock bool) (*Server, error) {
	args := []string{"--db", "bench.db"}
	if stock {
		args = append(args, "--stock")
	}
	return b.Serve(ctx, args...)
}

// Serve starts a devserver with the given flags besides the usual ones, in a directory of its own.
func (b *Bed) Serve(ctx context.Context, flags ...string) (*Server, error) {
	binary, err := b.devserverBinary(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.Dir, "server")
	if err != nil {
		return nil, err
	}
	ready := filepath.Join(dir, "ready")
	args := append([]string{"--port", "0", "--headless", "--ready-file", ready, "--log-level", "error"}, flags...)
	p, err := b.Processes.Start(ctx, processes.Command{
		Name: "devserver", Path: binary, Args: args, Dir: dir, ReadyFile: ready, ReadyWithin: serverStart, StopWithin: serverStop,
	})
	if err != nil {
		return nil, err
	}
	return &Server{Address: p.Said()[0], Dir: dir, Process: p}, nil
}

// devserverBinary returns the devserver to use, which it builds when none was given.
func (b *Bed) devserverBinary(ctx context.Context) (string, error) {
	if b.Devserver == "" {
		built, err := b.buildDevserver(ctx)
		if err != nil {
			return "", err
		}
		b.Devserver = built
	}
	return filepath.Abs(b.Devserver)
}

// buildDevserver compiles the devserver beside the results, where the next run finds it up to date.
func (b *Bed) buildDevserver(ctx context.Context) (string, error) {
	root, err := stack.Root(ctx)
	if err != nil {
		return "", fmt.Errorf("%w; or give -devserver", err)
	}
	fmt.Fprintln(b.Notes, "building the devserver; the first time this compiles a Temporal server, which takes four to seven minutes")
	binary := filepath.Join(root, "test", "bench", "results", "devserver")
	code, err := b.Processes.Run(ctx, processes.Command{
		Name: "build", Path: "go", Args: []string{"build", "-o", binary, "."}, Dir: filepath.Join(root, "devserver"),
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("go build failed:\n%s", b.Processes.Tail("build", 40))
	}
	return binary, err
}

// Dial connects as the worker command does: nothing is compressed on the way.
func Dial(ctx context.Context, address string, options ...grpc.DialOption) (client.Client, error) {
	return client.DialContext(ctx, superstep.Watched(dialled(address, options)))
}

// DialShared connects a client and a worker of one process, which keep large values in a storage; nil for none. It returns the options
// too, as both need the converters.
func DialShared(ctx context.Context, address string, values *storage.Storage, options ...grpc.DialOption) (client.Client, client.Options, error) {
	o := dialled(address, options)
	o.ExternalStorage = values.External()
	o = superstep.Watched(superstep.Encoded(o))
	c, err := client.DialContext(ctx, o)
	return c, o, err
}

// DialCounting is Dial with a metrics handler.
func DialCounting(ctx context.Context, address string, handler client.MetricsHandler) (client.Client, error) {
	o := dialled(address, nil)
	o.MetricsHandler = handler
	return client.DialContext(ctx, o)
}

func dialled(address string, options []grpc.DialOption) client.Options {
	return client.Options{HostPort: address, Logger: silent{},
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}, DialOptions: options}}
}

// silent drops the SDK's log lines: a killed worker makes many, and each would cost time.
type silent struct{}

var _ log.Logger = silent{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
