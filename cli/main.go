package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
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

// Worker is [Program.Worker] over graphs.
func Worker(graphs ...superstep.Runnable) { Program{Graphs: graphs}.Worker() }

// Main runs this process as the whole command line, "worker" included, and ends the process with an exit code. Ctrl-C and
// SIGTERM stop the command: a worker drains, a followed run goes on without its follower. The second signal stops at once.
func (p Program) Main() { p.main((*app).rootCommand) }

// Worker runs this process as a worker of the program's graphs and leaders, without a sub-command: the flags are those of
// "superstep worker". Its sub-command healthcheck asks a running worker whether it is ready. It ends the process as
// [Program.Main] does.
func (p Program) Worker() { p.main((*app).workerProgram) }

func (p Program) main(root func(*app) *cobra.Command) {
	ctx, stop := untilSignal(context.Background(), os.Stderr, os.Exit)
	a := newApp(os.Stdin, os.Stdout, os.Stderr, p)
	code := a.runAs(ctx, root(a), os.Args[1:])
	stop()
	os.Exit(code)
}

// Run carries out one command line of [Program.Main] and returns its exit code. args leave out the program's name. When ctx
// ends, so does the command, as on Ctrl-C.
func (p Program) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newApp(stdin, stdout, stderr, p).run(ctx, args)
}
