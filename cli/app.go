package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/propagation"
	"go.temporal.io/sdk/converter"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/serve"
	"superstep.dev/store"
	"superstep.dev/thread"
)

// Program is what a process serves, and knows by name.
type Program struct {
	Graphs  []superstep.Runnable
	Leaders []superstep.Leader
	// DataConverter encodes and decodes what is stored, in workers and in all other commands; nil means Temporal's default.
	// Give a codec with it to keep what runs have, errors included, unreadable for the server.
	DataConverter converter.DataConverter
	// Index has the items of the store found by the meaning of a text; nil for not at all. Give all programs of a store the same.
	Index *store.Index
	// Serve changes what "superstep serve" serves, after the command line has been read: a program that knows by itself who asks, or who
	// may do what, sets Authenticate and Authorize. nil changes nothing.
	Serve func(*serve.Config)
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

// app is one command line: what it was given, and the clock, user, environment and server around it, which tests replace. The
// commands are methods of types that embed it, one for each group: see doc.go.
type app struct {
	*screen.Screen
	connection

	program string
	graphs  []superstep.Runnable
	leaders []superstep.Leader
	index   *store.Index
	serving func(*serve.Config)
	stdin   io.Reader
	stderr  io.Writer

	// parsed says that the command line is read: errors are the command's own from then on.
	parsed bool

	userName func() string
	// newThread makes the id of a thread that must be new.
	newThread func(graph string) string
	// spell translates a command of the whole command line into one of this program, for the lines that the user is told to
	// type next; nil when this program has the same commands.
	spell func(args []string) (program string, words []string)
}

// newApp returns the command line of this process.
func newApp(stdin io.Reader, stdout, stderr io.Writer, p Program) *app {
	return &app{
		Screen: screen.New(stdout), connection: newConnection(p.DataConverter),
		program: programName(os.Args[0]), graphs: p.Graphs, leaders: p.Leaders, index: p.Index, serving: p.Serve,
		stdin: stdin, stderr: stderr,
		userName: osUser, newThread: thread.NewID,
	}
}

// run carries out a line of the whole command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int { return a.runAs(ctx, a.rootCommand(), args) }

// runAs carries out a line of the program that root is.
func (a *app) runAs(ctx context.Context, root *cobra.Command, args []string) int {
	if wantsJSON(args) {
		a.Format = screen.FormatJSON // before the flags are parsed, as parsing may fail
	}
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "use os.Args"
	root.SetIn(a.stdin)
	root.SetOut(a.Screen)
	root.SetErr(a.stderr)
	ran, err := root.ExecuteContextC(a.within(ctx))
	err = a.asUsageError(ran, err)
	if failure := a.Err(); failure != nil && (err == nil || isSilent(err)) {
		err = failure // a screen that nobody saw does not count
	}
	return a.report(err)
}

// within returns ctx with the span in which somebody runs this command line, if the environment names one: runs that it starts and
// answers that it gives are told of there.
func (a *app) within(ctx context.Context) context.Context {
	carried := propagation.MapCarrier{}
	for variable, name := range map[string]string{"TRACEPARENT": "traceparent", "TRACESTATE": "tracestate"} {
		carried[name], _ = a.env.LookupEnv(variable)
	}
	return propagation.TraceContext{}.Extract(ctx, carried)
}

// wantsJSON reports whether a command line asks for JSON, as far as one can tell without parsing it.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i, arg := range args {
		switch {
		case arg == "-ojson", arg == "-o=json", arg == "--output=json":
			return true
		case (arg == "-o" || arg == "--output") && i+1 < len(args) && args[i+1] == screen.FormatJSON:
			return true
		}
	}
	return false
}

// asUsageError gives errors about the command line their exit code and a hint where to read on.
func (a *app) asUsageError(cmd *cobra.Command, err error) error {
	var usage *usageError
	switch {
	case errors.As(err, &usage):
	case err == nil || a.parsed:
		return err
	default:
		usage = &usageError{message: err.Error()}
	}
	usage.hint = cmp.Or(usage.hint, strings.TrimSpace(a.program+strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name())+" --help"))
	return usage
}

// graph returns the compiled-in graph of that name.
func (a *app) graph(name string) (superstep.Runnable, bool) {
	i := slices.IndexFunc(a.graphs, func(g superstep.Runnable) bool { return g.Name() == name })
	if i < 0 {
		return nil, false
	}
	return a.graphs[i], true
}

// namesOf returns the names of the compiled-in graphs or leaders.
func namesOf[T interface{ Name() string }](all []T) []string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = one.Name()
	}
	return names
}

// programName is how the user called this program, so that a printed command can be typed again: by its name when it
// was found on the path, else by the relative path that was typed. An absolute path is shortened to the name, as
// build tools and supervisors make those, not people.
func programName(arg0 string) string {
	if filepath.IsAbs(arg0) {
		return filepath.Base(arg0)
	}
	return arg0
}

// osUser returns the name of who runs this process, "" when the system does not say.
func osUser() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}
