package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/converter"

	"superstep.dev"
)

// Program is what a process serves, and knows by name.
type Program struct {
	Graphs  []superstep.Runnable
	Leaders []superstep.Leader
	// DataConverter encodes and decodes what is stored, in workers and in all other commands; nil means Temporal's default.
	// Give a codec with it to keep what runs have, errors included, unreadable for the server.
	DataConverter converter.DataConverter
}

// Main is [Program.Main] over graphs.
func Main(graphs ...superstep.Runnable) { Program{Graphs: graphs}.Main() }

// Worker is [Program.Worker] over graphs.
func Worker(graphs ...superstep.Runnable) { Program{Graphs: graphs}.Worker() }

// Starter is [Program.Starter] of a program without graphs: the server's workers know them.
func Starter() { Program{}.Starter() }

// Main runs this process as the whole command line, "worker" included, and ends the process with an exit code. Ctrl-C and
// SIGTERM stop the command: a worker drains, a followed run goes on without its follower. The second signal stops at once.
func (p Program) Main() { p.main((*app).rootCommand) }

// Worker runs this process as a worker of the program's graphs and leaders, without a sub-command: the flags are those of
// "superstep worker". Its sub-command healthcheck asks a running worker whether it is ready. It ends the process as
// [Program.Main] does.
func (p Program) Worker() {
	p.main(func(a *app) *cobra.Command { return operating{a}.workerProgram() })
}

// Starter runs this process as a starter, without a sub-command: it starts a run of a graph that the server's workers serve,
// follows it until it asks or ends, and answers it. It ends the process as [Program.Main] does, with the code of the run.
func (p Program) Starter() { p.main(func(a *app) *cobra.Command { return starting{a}.program() }) }

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

// untilSignal returns a context that ends with the first Ctrl-C or SIGTERM. The second one calls exit at once. stop
// gives the signals back to the system.
func untilSignal(parent context.Context, stderr io.Writer, exit func(code int)) (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(parent)
	done := make(chan struct{})
	go watchSignals(signals, done, cancel, func(s os.Signal) {
		fmt.Fprintln(stderr, "second signal: stopped at once")
		exit(signalExit(s))
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// watchSignals calls first on the first signal and second on the second, until done.
func watchSignals(signals <-chan os.Signal, done <-chan struct{}, first func(), second func(os.Signal)) {
	select {
	case <-signals:
		first()
	case <-done:
		return
	}
	select {
	case s := <-signals:
		second(s)
	case <-done:
	}
}

// signalExit is the exit code that shells give a process ended by the signal.
func signalExit(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return ExitInterrupted
}
