package processes

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// insistence is how long after a signal another one counts as a second one. What passes signals on, such as timeout and
// some shells, sends a signal to a process and to its group: the same process gets it twice.
const insistence = time.Second

// UntilSignal returns a context that ends with the first Ctrl-C, SIGTERM or SIGHUP (the terminal was closed), with a
// [*SignalError] as its cause. Another signal, a second or more later, ends this process at once, and a [Set]'s guard
// its children. stop gives the signals back to the system.
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
			cancel(signalError(s))
			time.AfterFunc(insistence, func() { signal.Stop(signals) })
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
