package testserver

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// stopTimeout is how long a process may take to end by itself; it is that long for busy machines.
const stopTimeout = 2 * time.Minute

// child is a process that does not outlive this one, however this one ends.
type child struct {
	cmd    *exec.Cmd
	output *output
	exited chan struct{}
}

// spawn starts a process. dir is removed with it if this process ends first; "" is none.
func spawn(cmd *exec.Cmd, dir string) (*child, error) {
	c := &child{cmd: cmd, output: &output{}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = c.output, c.output
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	untie, err := tie(cmd.Process.Pid, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch over the process: %w", err), killGroup(cmd), cmd.Wait())
	}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		untie()        // at once: its id may become another process's
		close(c.exited)
	}()
	return c, nil
}

// watching ends the process group $1 and removes the directory $2 when its input ends, but not when it is stopped. The
// spelling of kill is the one that every shell takes.
const watching = `cat >/dev/null && { kill -s KILL -- "-$1" 2>/dev/null; [ -z "$2" ] || rm -rf -- "$2"; }`

// tie lets a shell wait for this process's end, which it sees by the end of a pipe, and clean up then. Nothing in this
// process could: it may be killed, or end by a panic or os.Exit.
func tie(pid int, dir string) (untie func(), err error) {
	watch := exec.Command("sh", "-c", watching, "sh", strconv.Itoa(pid), dir)
	ownGroup(watch)
	if _, err := watch.StdinPipe(); err != nil {
		return nil, err
	}
	if err := watch.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = killGroup(watch) // nothing else ends it before this process does
		_ = watch.Wait()     // which says that it was killed
	}, nil
}

// stop asks the process to end, and makes it after stopTimeout.
func (c *child) stop() error {
	if c.over() {
		return nil
	}
	if err := terminate(c.cmd); err != nil && !c.over() {
		return errors.Join(err, c.kill())
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("it did not end within %v of being asked to", stopTimeout), c.kill())
	}
}

// kill ends the process as a crash does.
func (c *child) kill() error {
	if c.over() {
		return nil
	}
	err := killGroup(c.cmd)
	<-c.exited
	if err != nil {
		return fmt.Errorf("kill the process: %w", err)
	}
	return nil
}

// over reports whether the process has ended.
func (c *child) over() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// outputKept bounds what is kept of a process's output: the newest.
const outputKept = 64 << 10

// output keeps the end of what a process writes. It is safe for concurrent use.
type output struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if over := len(o.text) - outputKept; over > 0 {
		o.text = bytes.Clone(o.text[over:])
	}
	return len(p), nil
}

// String returns what is kept.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}
