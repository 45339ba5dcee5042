package main

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child in a group of its own, so that its end is the end of everything it started.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// forks runs on one thread that lives as long as this process: on Linux a child hears of its parent's death when the
// thread that started it ends, whatever becomes of the others.
var forks = func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range calls {
			f()
		}
	}()
	return calls
}()

// spawn starts a child that does not outlive this process.
func spawn(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = ownGroup()
	started := make(chan error)
	forks <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	return p, nil
}

// kill ends the child and its group without a warning, and returns when it sent the signal.
func (p *process) kill() error {
	err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// stop asks the child to end, and makes it end when it takes too long.
func (p *process) stop(patience time.Duration) error {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) // fails when it is gone, which is fine
	select {
	case <-p.exited:
		return nil
	case <-time.After(patience):
	}
	err := p.kill()
	<-p.exited
	return err
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}
