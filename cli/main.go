package cli

import (
	"context"
	"io"
	"os"

	"superstep.dev"
)

// Main runs the command line of this process over graphs, and ends the process with an exit code. Ctrl-C and SIGTERM
// stop the command: a worker drains, a followed run goes on without its follower. The second signal stops at once.
func Main(graphs ...superstep.Runnable) {
	ctx, stop := untilSignal(context.Background(), os.Stderr, os.Exit)
	code := Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, graphs...)
	stop()
	os.Exit(code)
}

// Run carries out one command line and returns its exit code. args leave out the program's name. When ctx ends, so
// does the command, as on Ctrl-C.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer,
	graphs ...superstep.Runnable) int {
	return newApp(stdin, stdout, stderr, graphs).run(ctx, args)
}
