// Command demo shows in a minute what Superstep is for: a refund that a person approves, a worker that is killed with
// SIGKILL while the payment is in flight, and exactly one refund all the same.
//
//	go run ./examples/refund/demo
//
// It needs Go and nothing else. It builds and starts a Temporal server, the payments service of the example and
// workers, with their data in a directory of its own that it removes again; ports that are taken are not touched. Every
// figure on its screen is measured, and its exit code is 0 only if the payments service has exactly one refund.
//
// At a terminal it asks the question of the run; without one, or with YES=1, it answers yes itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"superstep.dev/internal/processes"
)

func main() { os.Exit(run(os.Args[1:])) }

// settings are the flags.
type settings struct {
	anyPort bool
	dir     string
}

func run(args []string) (exit int) {
	var s settings
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.BoolVar(&s.anyPort, "any-port", false, "take free ports even where the usual ones (7233, 8233, 8090) are free")
	flags.StringVar(&s.dir, "dir", "", "`directory` for the data of the demo (default .demo of the repository)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	return conclude(play(ctx, newScreen(os.Stdout), s))
}

// errDeclined ends a demo in which a person said no. Nothing went wrong, but 0 stands for exactly one refund.
var errDeclined = errors.New("no refund, as answered")

// exitDeclined is the exit code of that.
const exitDeclined = 3

// conclude prints the last line and returns the exit code.
func conclude(verdict string, err error) int {
	var signal *processes.SignalError
	switch {
	case err == nil:
		fmt.Println("demo: OK, " + verdict)
		return 0
	case errors.Is(err, errDeclined):
		fmt.Printf("demo: %v\n", errDeclined)
		return exitDeclined
	case errors.As(err, &signal):
		fmt.Printf("\ndemo: %v; nothing of it is left\n", signal)
		return signal.Exit()
	default:
		fmt.Printf("demo: FAILED: %v\n", err)
		return 1
	}
}
