package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends with the first Ctrl-C or SIGTERM. The second one calls exit at once. stop
// gives the signals back to the system.
func untilSignal(parent context.Context, stderr io.Writer, exit func(code int)) (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(parent)
	done := make(chan struct{})
	go watchSignals(signals, done, cancel, func(s os.Signal) {
		fmt.Fprintln(stderr, "second signal: stopped at once")
		exit(signalExit(s))
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// watchSignals calls first on the first signal and second on the second, until done.
func watchSignals(signals <-chan os.Signal, done <-chan struct{}, first func(), second func(os.Signal)) {
	select {
	case <-signals:
		first()
	case <-done:
		return
	}
	select {
	case s := <-signals:
		second(s)
	case <-done:
	}
}

// signalExit is the exit code that shells give a process ended by the signal.
func signalExit(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return ExitInterrupted
}
