//go:build !unix

package processes

import (
	"errors"
	"os/exec"
)

// Systems without process groups and signals can only end processes, and nothing watches over them when this process
// is killed.

type guard struct{}

func newGuard() (*guard, error) { return &guard{}, nil }

func (*guard) hold(int) error { return nil }

func (*guard) release(int) {}

func (*guard) close() {}

func ownGroup(*exec.Cmd) {}

func killGroup(int) error { return errors.ErrUnsupported }

func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }
