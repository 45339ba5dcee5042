// Command run starts a Temporal server for tests, runs a command beside it with SUPERSTEP_TEST_ADDRESS set, stops the
// server, and exits as the command did:
//
//	go run ./test/run -- go test ./...
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"superstep.dev/internal/testserver"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run returns the command's exit code; 125 when there is no server, 126 or 127 when the command does not start, as
// other commands that run commands do.
func run(args []string, log io.Writer) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(log, "usage: run -- COMMAND [ARGUMENT...]")
		return 2
	}
	// Before the server starts: a signal must not leave it behind.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	binary, err := testserver.Binary(log)
	if err != nil {
		fmt.Fprintln(log, "testserver:", err)
		return 125
	}
	server, err := testserver.Launch(binary, testserver.Options{})
	if err != nil {
		fmt.Fprintln(log, "testserver:", err)
		return 125
	}
	code := beside(args, signals, log,
		testserver.EnvAddress+"="+server.Address(), testserver.EnvBinary+"="+binary)
	if err := server.Close(); err != nil {
		fmt.Fprintln(log, "testserver:", err)
	}
	return code
}

// beside runs the command to its end and passes signals on.
func beside(args []string, signals <-chan os.Signal, log io.Writer, env ...string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(log, "testserver:", err)
		if errors.Is(err, exec.ErrNotFound) {
			return 127
		}
		return 126
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have just ended
		case <-ended:
			return exitCode(cmd.ProcessState)
		}
	}
}

// exitCode is 128 and the signal for a command that a signal ended, as shells have it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
