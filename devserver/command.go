package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

const longHelp = `Run a Temporal server and its Web UI in one process, on one SQLite file or on
PostgreSQL, set up for Superstep: namespace "default" with 30 days of retention,
the search attributes that Superstep writes, and settings under which steps take
milliseconds.

It prints one line once it really serves, and then stays quiet. Ctrl-C stops it;
nothing that was acknowledged is lost, and runs that are open go on when it is
started again on the same database.

It is a development server: one machine, no TLS, no authentication. Anyone who
reaches the port may do anything, so think before widening --ip. Web pages of
other sites cannot: the Web UI answers under an IP address, localhost and the
names that --host adds, under no other.`

const examples = `  go run ./devserver                                  # superstep.db in this directory
  go run ./devserver --db :memory: --headless         # nothing kept, no Web UI
  go run ./devserver --postgres postgres://me@localhost/superstep
                                                      # two databases of a PostgreSQL server
  go run ./devserver --port 0 --ui-port 0 --ready-file ready
                                                      # free ports; the file "ready" appears,
                                                      # holding host:port, once it serves`

// execute runs the command line and returns the exit code: 0 after a clean stop
// or --help, 1 after an error, which is one line on stderr.
func execute(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// Once stopping has begun a second signal must end the process at once, as
	// its default action does: the file is safe either way.
	context.AfterFunc(ctx, stop)

	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "devserver:", oneLine(err))
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "devserver",
		Short:   "A Temporal server with Web UI in one process, for developing with Superstep",
		Long:    longHelp,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.choose(cmd.Flags().Changed, os.Getenv(envPostgres)); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	o.register(cmd.Flags())
	return cmd
}

// oneLine joins the lines of an error, since some of the server's have several.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
