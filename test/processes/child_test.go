package processes_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"superstep.dev/test/processes"
)

// The test binary is also the processes that the tests start, each with a role by these variables.
const (
	envRole    = "PROCESSES_TEST_ROLE"
	envReady   = "PROCESSES_TEST_READY"   // the ready file to write
	envWitness = "PROCESSES_TEST_WITNESS" // whom to connect to for as long as the process lives
	envLogs    = "PROCESSES_TEST_LOGS"
)

func TestMain(m *testing.M) {
	play, child := roles[os.Getenv(envRole)]
	if !child {
		os.Exit(m.Run())
	}
	attend()
	if err := play(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var roles = map[string]func() error{
	"service": service,
	"deaf":    deaf,
	"broken":  broken,
	"family":  family,
	"program": program,
	"panic":   panics,
	"hello":   func() error { fmt.Println("hello"); os.Exit(7); return nil },
}

// attend keeps a connection to the witness open: it sees this process's end by the connection's.
func attend() {
	tell(os.Getenv(envRole))
}

// tell opens a connection to the witness, if there is one, and says a word there.
func tell(word string) {
	address := os.Getenv(envWitness)
	if address == "" {
		return
	}
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_, err = io.WriteString(conn, word+"\n")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	held = append(held, conn)
}

var held []net.Conn

// started is what a program tells the witness once its family is ready: a signal that comes before ends the start instead.
const started = "started"

// service gets ready and ends when it is asked to.
func service() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	fmt.Println("serving at 127.0.0.1:1")
	if err := writeReady(); err != nil {
		return err
	}
	<-signals
	fmt.Println("stopping")
	return nil
}

func writeReady() error {
	file := os.Getenv(envReady)
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file+".new", []byte("127.0.0.1:1\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// deaf does not end when it is asked to.
func deaf() error {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println("serving at nowhere")
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // a process that can get a signal is not deadlocked
	select {}
}

// broken ends before it is ready.
func broken() error { return fmt.Errorf("it is\nbroken") }

// family starts a process in its own group and ends when asked to, without it.
func family() error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"=deaf", envReady+"=")
	cmd.Stdout = os.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	return service()
}

// program runs a family until a signal.
func program() error {
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	set, err := startFamily(ctx)
	if err != nil {
		return err
	}
	<-ctx.Done()
	fmt.Println("stopped:", context.Cause(ctx))
	return set.Stop()
}

// panics starts a family and panics, when it is asked to, where no defer of its own helps.
func panics() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if _, err := startFamily(context.Background()); err != nil {
		return err
	}
	go func() {
		<-signals
		panic("for the test")
	}()
	select {}
}

func startFamily(ctx context.Context) (*processes.Set, error) {
	set, ctx, err := processes.New(ctx, os.Getenv(envLogs))
	if err != nil {
		return nil, err
	}
	_, err = set.Start(ctx, role("family", envReady+"="+os.Getenv(envReady), envWitness+"="+os.Getenv(envWitness)))
	if err == nil {
		tell(started)
	}
	return set, err
}

// role is the command that plays a role.
func role(name string, env ...string) processes.Command {
	return processes.Command{Name: name, Path: os.Args[0], ReadyWithin: patience, StopWithin: patience, Env: append(os.Environ(), append(env, envRole+"="+name)...)}
}
