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
	"flag"
	"fmt"
	"os"
	"strings"

	"superstep.dev/examples/internal/approver"
	"superstep.dev/examples/internal/dev"
	"superstep.dev/test/processes/stack"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) (exit int) {
	var origin string
	e := dev.Example{Programs: stack.Chat, Ports: "7233, 8233, 8090, 2024", Folder: ".chat", Kept: "conversations and refunds", Workers: 2}
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	e.Flags(flags)
	flags.StringVar(&origin, "origin", "", "`ORIGINS` of further web pages that may use the threads, with commas between them: http://localhost:3000")
	e.Begin = func(ctx context.Context, _ string, s *stack.Stack, a approver.Approver) (string, error) {
		_, page, address, err := s.Service(ctx, "", "--key", a.Signing, "--origin", origin)
		return fmt.Sprintf(`
devserver %s   web UI %s   payments %s

The page:     %s
Other clients: http://%s, assistant "chat" (examples/chat/README.md)

Ctrl-C stops everything.

`, s.Address, s.WebUI, strings.TrimPrefix(s.Payments, "http://"), page, address), err
	}
	return e.Run(flags, args, os.Stdout, os.Stderr)
}
