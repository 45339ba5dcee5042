package processes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// outputDelay bounds how long the output of a process is read after its end: what it started may hold it open.
const outputDelay = 2 * time.Second

// Process is a process that was started. It is safe for concurrent use.
type Process struct {
	command Command
	set     *Set
	cmd     *exec.Cmd
	file    *os.File // the log
	begins  int64    // where in the log this process's part begins
	ended   chan struct{}

	mu    sync.Mutex
	asked bool // its end is no surprise
	said  []string
}

// newProcess prepares a process to start, with its log open.
func newProcess(s *Set, c Command, asked bool) (*Process, error) {
	file, err := os.OpenFile(s.log(c.Name), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", c.Name, err)
	}
	begins, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the log of %s: %w", c.Name, err), file.Close())
	}
	p := &Process{command: c, set: s, file: file, begins: begins, asked: asked, ended: make(chan struct{})}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Env, p.cmd.Dir, p.cmd.WaitDelay = c.Env, c.Dir, outputDelay
	p.cmd.Stdout = file
	if c.Output != nil {
		p.cmd.Stdout = io.MultiWriter(file, c.Output)
	}
	p.cmd.Stderr = p.cmd.Stdout // one writer, so lines keep their order
	ownGroup(p.cmd)
	return p, nil
}

// Name returns what people call the process.
func (p *Process) Name() string { return p.command.Name }

// PID returns the process's id, which is also that of its process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the path of the log.
func (p *Process) Log() string { return p.file.Name() }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// await waits for the process's end and clears up after it.
func (p *Process) await() {
	_ = p.cmd.Wait()       // how it ended is in ProcessState
	_ = killGroup(p.PID()) // what it started goes with it; mostly there is nothing
	if f, ok := p.command.Output.(interface{ Flush() }); ok {
		f.Flush()
	}
	_ = p.file.Close() // written without a buffer
	var failure error
	if !p.wasAsked() {
		failure = p.exitError()
	}
	p.set.gone(p, failure)
	close(p.ended)
}

// Stop asks the process to end (SIGTERM), kills it when it takes longer than its StopWithin, and returns when it is
// gone. An error says that it had to be killed. Stopping one that has ended does nothing.
func (p *Process) Stop() error {
	p.ask()
	if p.over() {
		return nil
	}
	if err := terminate(p.cmd); err != nil && !p.over() && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("stop %s: %w", p.Name(), err), p.Kill())
	}
	bound := time.NewTimer(p.command.stopWithin())
	defer bound.Stop()
	select {
	case <-p.ended:
		return nil
	case <-bound.C:
		return errors.Join(&KilledError{Name: p.Name(), After: p.command.stopWithin()}, p.Kill())
	}
}

// Kill ends the process and what it started as a crash does (SIGKILL), and returns when it is gone.
func (p *Process) Kill() error {
	p.ask()
	if p.over() {
		return nil
	}
	err := killGroup(p.PID())
	if err != nil && !p.over() {
		err = p.cmd.Process.Kill()
	}
	if err != nil && !p.over() && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.Name(), err)
	}
	<-p.ended
	return nil
}

// over reports whether the process has ended.
func (p *Process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// ask notes that the process's end is wanted.
func (p *Process) ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = true
}

func (p *Process) wasAsked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}
