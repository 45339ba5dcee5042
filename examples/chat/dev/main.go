// Command dev runs the chat example: a Temporal server, the payments service, two workers, and the web service with the page, with the
// output of each under its name, until Ctrl-C.
//
//	go run ./examples/chat/dev
//
// It needs Go and nothing else. What is said and refunded is kept in .chat of the repository. Who runs it approves at the page, with the
// key that it makes there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"superstep.dev/examples/internal/approver"
	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

func main() { os.Exit(run(os.Args[1:])) }

// settings are the flags.
type settings struct {
	anyPort     bool
	dir, origin string
}

func run(args []string) (exit int) {
	var s settings
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	flags.BoolVar(&s.anyPort, "any-port", false, "take free ports even where the usual ones (7233, 8233, 8090, 2024) are free")
	flags.StringVar(&s.dir, "dir", "", "`directory` for databases and logs (default .chat of the repository)")
	flags.StringVar(&s.origin, "origin", "", "`ORIGINS` of further web pages that may use the threads, with commas between them: http://localhost:3000")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	if err := stay(ctx, os.Stdout, s); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		return 1
	}
	return 0
}

// stay runs everything until ctx ends, which is no error, or until one of the processes ends, which is.
func stay(ctx context.Context, out io.Writer, s settings) error {
	root, err := stack.Root(ctx)
	if err != nil {
		return err
	}
	if s.dir == "" {
		s.dir = filepath.Join(root, ".chat")
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return fmt.Errorf("find the directory for databases and logs: %w", err)
	}
	logs := filepath.Join(s.dir, "logs")
	if err := os.RemoveAll(logs); err != nil { // those of the last time
		return fmt.Errorf("remove old logs: %w", err)
	}
	set, ctx, err := processes.New(ctx, logs)
	if err != nil {
		return err
	}
	err = serve(ctx, out, set, root, s)
	fmt.Fprintln(out, "\nstopping …")
	if slow := set.Stop(); slow != nil {
		fmt.Fprintln(out, "note:", slow)
	}
	var signal *processes.SignalError
	if errors.As(err, &signal) {
		fmt.Fprintf(out, "stopped; conversations and refunds are kept in %s\n", s.dir)
		return nil
	}
	return err
}

// serve builds and starts the processes and returns why they have to stop.
func serve(ctx context.Context, out io.Writer, set *processes.Set, root string, s settings) error {
	fmt.Fprintln(out, "Building (first time 4 to 7 min: the Temporal server) …")
	programs, err := stack.Build(ctx, set, root, filepath.Join(s.dir, "bin"), stack.Chat, func(name string) {
		fmt.Fprintln(out, "  "+name)
	})
	if err != nil {
		return err
	}
	a, err := approver.Prepare(s.dir)
	if err != nil {
		return err
	}
	const width = len("devserver")
	prefixer := processes.NewPrefixer(out, width, isTerminal(out))
	st, err := stack.Start(ctx, set, programs, stack.Config{
		Dir: s.dir, AnyPort: s.anyPort, Drain: 10 * time.Second, Output: prefixer.For, Env: a.Env(),
	})
	if err != nil {
		return err
	}
	for range 2 {
		if _, err := st.Worker(ctx); err != nil {
			return err
		}
	}
	_, page, address, err := st.Service(ctx, "", "--key", a.Signing, "--origin", s.origin)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `
devserver %s   web UI %s   payments %s

The page:     %s
Other clients: http://%s, assistant "chat" (examples/chat/README.md)

Ctrl-C stops everything.

`, st.Address, st.WebUI, strings.TrimPrefix(st.Payments, "http://"), page, address)
	<-ctx.Done()
	return context.Cause(ctx)
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
