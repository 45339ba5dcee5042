package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"

	"superstep.dev"
)

// app is one command line on its way: what it was given, and the world around it, which tests replace.
type app struct {
	program string
	graphs  []superstep.Runnable
	leaders []*superstep.Leader
	payload converter.DataConverter // nil for Temporal's default

	stdin  io.Reader
	stdout *stickyWriter
	stderr io.Writer

	conn    connectionFlags
	output  string
	colours bool // the screen is a terminal that shows them
	secrets []string

	backend  backend
	env      envconfig.EnvLookup
	now      func() time.Time
	userName func() string
	// newThread makes the id of a thread that must be new.
	newThread func(graph string) string
}

// newApp returns the command line of this process.
func newApp(stdin io.Reader, stdout, stderr io.Writer, p Program) *app {
	return &app{
		program:  programName(os.Args[0]),
		graphs:   p.Graphs,
		leaders:  p.Leaders,
		payload:  p.DataConverter,
		colours:  showsColours(stdout),
		stdin:    stdin,
		stdout:   &stickyWriter{w: stdout},
		stderr:   stderr,
		output:   outputText,
		backend:  temporalBackend(),
		env:      envconfig.EnvLookupOS,
		now:      time.Now,
		userName: osUser,

		newThread: superstep.NewThreadID,
	}
}

// run carries out a line of the whole command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int { return a.runAs(ctx, a.rootCommand(), args) }

// runAs carries out a line of the program that root is.
func (a *app) runAs(ctx context.Context, root *cobra.Command, args []string) int {
	if wantsJSON(args) {
		a.output = outputJSON // before the flags are parsed, as parsing may fail
	}
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "use os.Args"
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	ran, err := root.ExecuteContextC(ctx)
	err = a.asUsageError(ran, err)
	if failure := a.stdout.failure(); failure != nil && (err == nil || isSilent(err)) {
		err = failure // a screen that nobody saw does not count
	}
	return a.report(err)
}

// commandError is an error of a command's own run; every other error comes from reading the command line.
type commandError struct{ error }

// Unwrap gives the command's error.
func (e commandError) Unwrap() error { return e.error }

// asUsageError gives errors about the command line their exit code and a hint where to read on.
func (a *app) asUsageError(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	var (
		own   commandError
		usage *usageError
	)
	if errors.As(err, &own) {
		err = own.error
		if !errors.As(err, &usage) {
			return err
		}
	} else if !errors.As(err, &usage) {
		usage = &usageError{message: err.Error()}
	}
	if usage.hint == "" {
		usage.hint = strings.TrimSpace(a.program + strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()) + " --help")
	}
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

// graphNames returns the names of the compiled-in graphs.
func (a *app) graphNames() []string {
	names := make([]string, len(a.graphs))
	for i, g := range a.graphs {
		names[i] = g.Name()
	}
	return names
}

// leaderNames returns the names of the compiled-in leaders.
func (a *app) leaderNames() []string {
	names := make([]string, len(a.leaders))
	for i, l := range a.leaders {
		names[i] = l.Name()
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
