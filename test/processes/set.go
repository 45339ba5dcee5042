// Package processes starts the child processes of a program, names and logs them, and leaves none of them behind.
//
// A [Set] is what one program runs. Each process leads a process group of its own, so that a Ctrl-C at the terminal
// reaches only the program, which then stops its processes in the reverse order of their start. However the program
// itself ends, by a panic or by SIGKILL, what it started is killed: a guard, a shell that waits for the end of a pipe,
// sees to that.
package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// ErrStopped is the error of a start in a set that was stopped.
var ErrStopped = errors.New("the processes are being stopped; nothing more is started")

// Set is the processes of one program. It is safe for concurrent use.
type Set struct {
	logs  string
	guard *guard
	fail  context.CancelCauseFunc

	mu      sync.Mutex
	stopped bool
	running []*Process // in the order of their start
}

// New returns a set that logs into the directory logs, which it makes. The returned context ends with parent, and with
// an [*ExitError] as its cause as soon as a process of the set ends that nobody asked to: whoever waits for anything
// that processes do waits with it. The caller stops the set.
func New(parent context.Context, logs string) (*Set, context.Context, error) {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, nil, fmt.Errorf("make a directory for the logs: %w", err)
	}
	guard, err := newGuard()
	if err != nil {
		return nil, nil, fmt.Errorf("watch over processes (is there a shell, sh?): %w", err)
	}
	ctx, fail := context.WithCancelCause(parent)
	return &Set{logs: logs, guard: guard, fail: fail}, ctx, nil
}

// Start starts a process and returns once it is ready. One that does not get ready, or ends before, is an error, and
// is gone then.
func (s *Set) Start(ctx context.Context, c Command) (*Process, error) {
	if err := c.forgetReady(); err != nil {
		return nil, err
	}
	p, err := s.launch(c, false)
	if err != nil {
		return nil, err
	}
	if err := p.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Run runs a process to its end and returns its exit code. When ctx ends first the process is stopped, and the error is
// the cause.
func (s *Set) Run(ctx context.Context, c Command) (exit int, err error) {
	p, err := s.launch(c, true)
	if err != nil {
		return 0, err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		return 0, errors.Join(context.Cause(ctx), p.Stop())
	}
	code := p.cmd.ProcessState.ExitCode()
	if code < 0 {
		return code, p.exitError()
	}
	return code, nil
}

// launch starts a process. asked says that its end is no failure of the set.
func (s *Set) launch(c Command, asked bool) (*Process, error) {
	p, err := s.begin(c, asked)
	if err != nil {
		return nil, err
	}
	err = s.guard.hold(p.PID())
	go p.await() // not before: it takes the hold back
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch over %s: %w", c.Name, err), p.Kill())
	}
	return p, nil
}

func (s *Set) begin(c Command, asked bool) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, fmt.Errorf("start %s: %w", c.Name, ErrStopped)
	}
	p, err := newProcess(s, c, asked)
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Name, err), p.file.Close())
	}
	s.running = append(s.running, p)
	return p, nil
}

// Tail returns the last lines that processes of that name wrote, at most n; "" when there are none.
func (s *Set) Tail(name string, n int) string { return Tail(s.log(name), n) }

func (s *Set) log(name string) string { return filepath.Join(s.logs, name+".log") }

// gone takes a process that has ended out of the set.
func (s *Set) gone(p *Process, failure error) {
	s.guard.release(p.PID())
	s.mu.Lock()
	s.running = slices.DeleteFunc(s.running, func(other *Process) bool { return other == p })
	s.mu.Unlock()
	if failure != nil {
		s.fail(failure)
	}
}

// Stop stops every process, the youngest first, each as [Process.Stop] does, and lets nothing start any more. Nothing
// of the set runs when it returns; an error says which processes had to be killed. Stopping twice is fine.
func (s *Set) Stop() error {
	s.mu.Lock()
	s.stopped = true
	running := slices.Clone(s.running)
	s.mu.Unlock()
	var failed []error
	for _, p := range slices.Backward(running) {
		failed = append(failed, p.Stop())
	}
	s.guard.close()
	s.fail(ErrStopped)
	return errors.Join(failed...)
}
