// Package cmdline is what the programs of this folder have in common: they end on a signal, parse flags that a text of their own
// explains, and exit with 2 for a wrong use.
package cmdline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// ExitUsage is the status of wrong usage, and of what a program needs and does not get.
const ExitUsage = 2

// Main runs a program until it ends or is told to, and ends this process with its status.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// Flags are those of a program, which are to be declared on them.
func Flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	return flags
}

// Parse parses a command line. The error is flag.ErrHelp where somebody wants the usage.
func Parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return fmt.Errorf("%w (-help shows the flags)", err)
	}
	return err
}

// Refused prints the usage to who asked for it, or why a program called name cannot begin, and returns the exit status.
func Refused(name, usage string, err error, stdout, stderr io.Writer) int {
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return ExitUsage
}
