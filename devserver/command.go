package main

import (
	"context"
	_ "embed" // the help
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// help is what --help says before the flags, and behind a line of its own examples.
//
//go:embed help.txt
var help string

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
	long, examples, _ := strings.Cut(help, "\n\nExamples:\n")
	cmd := &cobra.Command{
		Use:     "devserver",
		Short:   "A Temporal server with Web UI in one process, for developing with Superstep",
		Long:    long,
		Example: strings.TrimRight(examples, "\n"),
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

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}
