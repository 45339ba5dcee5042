package processes

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// UntilSignal returns a context that ends with the first Ctrl-C, SIGTERM or SIGHUP (the terminal was closed), with a
// [*SignalError] as its cause. A second signal then ends this process at once, and a [Set]'s guard its children. stop
// gives the signals back to the system.
func UntilSignal(parent context.Context) (ctx context.Context, stop func()) {
	wanted := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup stays nohup
		wanted = append(wanted, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, wanted...)
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(signalError(s))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

func signalError(s os.Signal) *SignalError {
	e := &SignalError{Signal: s.String()}
	if n, ok := s.(syscall.Signal); ok {
		e.Number = int(n)
	}
	return e
}
