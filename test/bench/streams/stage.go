package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
	"superstep.dev/thread/live/nats"
)

// envProgram makes this program the command line over its graphs.
const envProgram = "SUPERSTEP_BENCH_STREAMS_PROGRAM"

// stage has the processes that are measured.
type stage struct {
	*testbed.Bed
	options options
	// agents is the program with the graphs that clients of the protocol are tested with, "" until it is built.
	agents string
	names  int
}

// pair is a worker and a server of a devserver of their own.
type pair struct {
	devserver, worker, serve *processes.Process
	address, base, dir       string
}

// pair starts a devserver, and a program as worker and server: this one, or the agents.
func (s *stage) pair(ctx context.Context, agents bool) (p *pair, err error) {
	program, err := os.Executable()
	if agents {
		program, err = s.agentsProgram(ctx)
	}
	if err != nil {
		return nil, err
	}
	server, err := s.StartServer(ctx, false)
	if err != nil {
		return nil, err
	}
	s.names++
	p = &pair{devserver: server.Process, address: server.Address, dir: server.Dir}
	ready := filepath.Join(p.dir, "worker.ready")
	command := func(name string, args ...string) processes.Command {
		return processes.Command{Name: name + strconv.Itoa(s.names), Path: program, Dir: p.dir, Env: append(os.Environ(), envProgram+"=1"),
			Args: append([]string{name, "--address", p.address, "--log-level", "warn"}, args...)}
	}
	c := command("worker", "--ready-file", ready)
	c.ReadyFile = ready
	if p.worker, err = s.Processes.Start(ctx, c); err != nil {
		return nil, err
	}
	c = command("serve", "--listen", "127.0.0.1:0")
	c.ReadyLine = regexp.MustCompile(`serving  (http://\S+)`)
	if p.serve, err = s.Processes.Start(ctx, c); err != nil {
		return nil, err
	}
	p.base = p.serve.Said()[1]
	return p, nil
}

// stop ends the processes.
func (p *pair) stop() error {
	for _, one := range []*processes.Process{p.serve, p.worker, p.devserver} {
		if err := one.Stop(); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) agentsProgram(ctx context.Context) (string, error) {
	if s.agents != "" {
		return s.agents, nil
	}
	root, err := stack.Root(ctx)
	if err != nil {
		return "", err
	}
	only := slices.DeleteFunc(slices.Clone(stack.Agents), func(name string) bool { return name == "devserver" })
	built, err := stack.Build(ctx, s.Processes, root, s.Dir, only, nil)
	s.agents = built.Worker
	return s.agents, err
}

// bare starts the two processes of the bare way over the NATS server of a pair, and returns the address of the second.
func (s *stage) bare(ctx context.Context, p *pair) (base string, err error) {
	c, err := testbed.Dial(ctx, p.address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	url, err := nats.Announced(ctx, c, "default")
	if err != nil {
		return "", fmt.Errorf("where the live tokens go: %w", err)
	}
	url, _, _ = strings.Cut(url, "?")
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	for _, role := range []string{"publish", "forward"} {
		p, err := s.Processes.Start(ctx, processes.Command{Name: role, Path: program, Args: []string{role, url}, Dir: s.Dir, ReadyLine: regexp.MustCompile(`ready at (\S+)`)})
		if err != nil {
			return "", err
		}
		base = p.Said()[1]
	}
	return base, nil
}

// resident is the memory that a process has in use, in KiB.
func resident(p *processes.Process) (float64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.ParseFloat(strings.Fields(size)[0], 64)
		}
	}
	return 0, fmt.Errorf("process %d has no memory", p.PID())
}
