package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// crewSize is how many workers there are when one is killed.
const crewSize = 2

// notice is a line that a worker process writes: it polls (no Node), or a node starts.
type notice struct {
	PID    int    `json:"pid"`
	Thread string `json:"thread,omitempty"`
	Node   string `json:"node,omitempty"`
	// At is the machine's clock in nanoseconds: all processes share it.
	At int64 `json:"at"`
}

func (n notice) at() time.Time { return time.Unix(0, n.At) }

// crew are the worker processes.
type crew struct {
	address string
	workers map[int]*process
	notices chan notice
}

func newCrew(address string) *crew {
	return &crew{address: address, workers: map[int]*process{}, notices: make(chan notice, 100)}
}

// fill starts the workers that are missing, and returns when they poll.
func (c *crew) fill(ctx context.Context) error {
	for len(c.workers) < crewSize {
		pid, err := c.start()
		if err != nil {
			return err
		}
		polls := func(n notice) bool { return n.PID == pid && n.Node == "" }
		if _, err := c.next(ctx, polls); err != nil {
			return fmt.Errorf("the worker does not poll: %w", err)
		}
	}
	return nil
}

// start starts this very program as a worker.
func (c *crew) start() (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// A pipe of our own: the process's would be closed with it, and a last line might be lost.
	lines, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, workerCommand, c.address)
	cmd.Stdout, cmd.Stderr = write, os.Stderr
	p, err := spawn(cmd)
	_ = write.Close() // the child has its own
	if err != nil {
		_ = lines.Close()
		return 0, err
	}
	c.workers[cmd.Process.Pid] = p
	go c.read(lines)
	return cmd.Process.Pid, nil
}

// read passes on what a worker writes, until it has ended.
func (c *crew) read(lines io.ReadCloser) {
	defer func() { _ = lines.Close() }()
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		var n notice
		if json.Unmarshal(scanner.Bytes(), &n) == nil {
			c.notices <- n
		}
	}
}

// await returns the next start of a thread's node.
func (c *crew) await(ctx context.Context, thread, node string) (notice, error) {
	n, err := c.next(ctx, func(n notice) bool { return n.Thread == thread && n.Node == node })
	if err != nil {
		err = fmt.Errorf("node %s of thread %s did not start: %w", node, thread, err)
	}
	return n, err
}

// next returns the next notice of interest and drops those before it.
func (c *crew) next(ctx context.Context, wanted func(notice) bool) (notice, error) {
	late := time.After(recoveryPatience)
	for {
		select {
		case n := <-c.notices:
			if wanted(n) {
				return n, nil
			}
		case <-late:
			return notice{}, fmt.Errorf("nothing happened for %v", recoveryPatience)
		case <-ctx.Done():
			return notice{}, ctx.Err()
		}
	}
}

// kill ends a worker with SIGKILL and returns when.
func (c *crew) kill(pid int) (time.Time, error) {
	p, ok := c.workers[pid]
	if !ok || !p.running() {
		return time.Time{}, errors.New("the worker that ran the node has ended by itself")
	}
	at := time.Now()
	err := p.kill()
	<-p.exited
	delete(c.workers, pid)
	return at, err
}

// end kills every worker.
func (c *crew) end() {
	for pid, p := range c.workers {
		_ = p.kill()
		<-p.exited
		delete(c.workers, pid)
	}
}
