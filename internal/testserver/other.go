//go:build !unix

package testserver

import (
	"errors"
	"os/exec"
)

// Elsewhere the tests of this repository do not run; what they need only has to compile, as graphtest is made of it.

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func freeze(*exec.Cmd) error { return errors.ErrUnsupported }

func thaw(*exec.Cmd) error { return errors.ErrUnsupported }
