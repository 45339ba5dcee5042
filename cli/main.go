package cli

import (
	"context"
	"io"
	"os"

	"go.temporal.io/sdk/converter"

	"superstep.dev"
)

// Program is what a process serves, and knows by name.
type Program struct {
	Graphs  []superstep.Runnable
	Leaders []*superstep.Leader
	// DataConverter encodes and decodes what is stored, in workers and in all other commands; nil means Temporal's default.
	// Give a codec with it to keep what runs have, errors included, unreadable for the server.
	DataConverter converter.DataConverter
}

// Main is [Program.Main] over graphs.
func Main(graphs ...superstep.Runnable) { Program{Graphs: graphs}.Main() }

// Main runs the command line of this process, and ends the process with an exit code. Ctrl-C and SIGTERM stop the command:
// a worker drains, a followed run goes on without its follower. The second signal stops at once.
func (p Program) Main() {
	ctx, stop := untilSignal(context.Background(), os.Stderr, os.Exit)
	code := p.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run carries out one command line and returns its exit code. args leave out the program's name. When ctx ends, so does the
// command, as on Ctrl-C.
func (p Program) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newApp(stdin, stdout, stderr, p).run(ctx, args)
}
