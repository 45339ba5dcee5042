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
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"superstep.dev/examples/internal/approver"
	"superstep.dev/examples/internal/dev"
	"superstep.dev/test/processes/stack"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) (exit int) {
	e := dev.Example{Programs: stack.Refund, Ports: "7233, 8233, 8090", Folder: ".dev", Kept: "runs and refunds", Env: []string{"REFUND_APPROVALS=1"},
		Begin: func(_ context.Context, root string, s *stack.Stack, a approver.Approver) (string, error) {
			return welcome(s, shown(root, a.Signing)), nil
		}}
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	e.Flags(flags)
	flags.IntVar(&e.Workers, "workers", 2, "how many workers to run")
	return e.Run(flags, args, os.Stdout, os.Stderr)
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
