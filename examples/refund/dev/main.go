// Command dev runs the refund example to play with: a Temporal server, the payments service and two workers, with the
// output of each under its name, until Ctrl-C.
//
//	go run ./examples/refund/dev
//
// It needs Go and nothing else. What runs and refunds there are is kept in .dev of the repository. REFUND_LIMIT, in
// cents, is the amount above which a person is asked to approve: who runs dev may, with the key that it makes there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"superstep.dev/examples/internal/approver"
	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

func main() { os.Exit(run(os.Args[1:])) }

// settings are the flags.
type settings struct {
	anyPort bool
	dir     string
	workers int
}

func run(args []string) (exit int) {
	var s settings
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	flags.BoolVar(&s.anyPort, "any-port", false, "take free ports even where the usual ones (7233, 8233, 8090) are free")
	flags.StringVar(&s.dir, "dir", "", "`directory` for databases and logs (default .dev of the repository)")
	flags.IntVar(&s.workers, "workers", 2, "how many workers to run")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if s.workers < 1 {
		fmt.Fprintf(os.Stderr, "dev: --workers %d: at least one has to serve the graph\n", s.workers)
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
		s.dir = filepath.Join(root, ".dev")
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
		fmt.Fprintf(out, "stopped; runs and refunds are kept in %s\n", s.dir)
		return nil
	}
	return err
}

// serve builds and starts the processes and returns why they have to stop.
func serve(ctx context.Context, out io.Writer, set *processes.Set, root string, s settings) error {
	fmt.Fprintln(out, "Building (first time 4 to 7 min: the Temporal server) …")
	programs, err := stack.Build(ctx, set, root, filepath.Join(s.dir, "bin"), stack.Refund, func(name string) {
		fmt.Fprintln(out, "  "+name)
	})
	if err != nil {
		return err
	}
	const width = len("devserver")
	a, err := approver.Prepare(s.dir)
	if err != nil {
		return err
	}
	prefixer := processes.NewPrefixer(out, width, isTerminal(out))
	st, err := stack.Start(ctx, set, programs, stack.Config{
		Dir: s.dir, AnyPort: s.anyPort, Drain: 10 * time.Second, Output: prefixer.For, Env: append(a.Env(), "REFUND_APPROVALS=1"),
	})
	if err != nil {
		return err
	}
	for range s.workers {
		if _, err := st.Worker(ctx); err != nil {
			return err
		}
	}
	fmt.Fprint(out, welcome(st, shown(root, a.Signing)))
	<-ctx.Done()
	return context.Cause(ctx)
}

// welcome says where everything is, and what to try.
func welcome(st *stack.Stack, key string) string {
	address := ""
	if st.Address != stack.DefaultAddress {
		address = " --address " + st.Address
	}
	return fmt.Sprintf(`
devserver %s   web UI %s   payments %s

Try, in another terminal:
  go run ./starter refund --thread r-7 --input '{"order_id":"o-7"}'%[4]s
  go run ./cmd/superstep inbox%[4]s
  go run ./starter --thread r-7 --approve --key %[5]s%[4]s
  go run ./cmd/superstep history r-7%[4]s

Ctrl-C stops everything.

`, st.Address, st.WebUI, st.Payments, address, key)
}

// shown is a path as it can be typed in the repository.
func shown(root, path string) string {
	if short, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return path
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
