package demo

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"

	"superstep.dev"
	"superstep.dev/internal/history"
	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
	"superstep.dev/thread/storage"
)

// Stage is a demo whose processes run.
type Stage struct {
	*Screen
	// Dir has the data of the processes. It is removed in the end.
	Dir   string
	Stack *stack.Stack
	// Worker is the first one.
	Worker   *processes.Process
	Temporal client.Client
	Runs     *superstep.Client
	// Tail reads the histories of runs.
	Tail history.Tail
}

// open starts the processes, connects to them and says where they are.
func open(ctx context.Context, out *Screen, set *processes.Set, programs stack.Programs, c stack.Config) (s *Stage, err error) {
	s = &Stage{Screen: out, Dir: c.Dir}
	if s.Stack, err = stack.Start(ctx, set, programs, c); err != nil {
		return nil, err
	}
	if s.Worker, err = s.Stack.Worker(ctx); err != nil {
		return nil, err
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	where := fmt.Sprintf("devserver %s   web UI %s", s.Stack.Address, s.Stack.WebUI)
	if s.Stack.Payments != "" {
		where += "   payments " + strings.TrimPrefix(s.Stack.Payments, "http://")
	}
	s.Line("%s", where)
	s.Line("worker #1 pid %d", s.Worker.PID())
	return s, nil
}

func (s *Stage) connect() (err error) {
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	if s.Temporal, err = client.Dial(client.Options{HostPort: s.Stack.Address, Logger: quiet}); err != nil {
		return fmt.Errorf("connect to the Temporal server: %w", err)
	}
	values, err := storage.Announced(context.Background(), s.Temporal, client.DefaultNamespace, storage.Options{})
	if err != nil {
		return err
	}
	if s.Runs, err = superstep.NewClient(s.Temporal, superstep.ClientConfig{Storage: values}); err != nil {
		return err
	}
	s.Tail = history.Tail{Service: s.Temporal.WorkflowService(), Namespace: client.DefaultNamespace,
		Converter: values.Converter(converter.GetDefaultDataConverter())}
	return nil
}

// Superstep shows a command line and carries it out. It must exit with want.
func (s *Stage) Superstep(ctx context.Context, want int, args ...string) error {
	s.Line("   $ superstep %s", shellLine(args))
	ctx, cancel := Within(ctx, "superstep "+args[0])
	defer cancel()
	code, err := s.Stack.Superstep(ctx, s.Indented(), args...)
	if err != nil {
		return err
	}
	if code != want {
		return fmt.Errorf("superstep %s exited with %d, not with %d", args[0], code, want)
	}
	return nil
}

// shellLine is a command line as one types it.
func shellLine(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if strings.ContainsAny(arg, ` "{}`) {
			words[i] = "'" + arg + "'"
		}
	}
	return strings.Join(words, " ")
}
