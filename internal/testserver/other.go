//go:build !unix

package testserver

import "os/exec"

// Elsewhere the tests of this repository do not run; what they need only has to compile, as graphtest is made of it.

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }
