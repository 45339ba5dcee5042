//go:build unix

package testserver

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group, so that a Ctrl-C meant for the tests does not reach it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a command started with ownGroup, and all that it started.
func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// terminate asks a command to end.
func terminate(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGTERM) }

// freeze stops a command without ending it, thaw has it go on.
func freeze(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGSTOP) }

func thaw(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGCONT) }
