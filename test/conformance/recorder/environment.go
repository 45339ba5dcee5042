package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// defaultVersion is the release of LangGraph that docs/differences.md compares with.
const defaultVersion = "1.2.22"

// PythonError says that there is no Python that environments can be made with.
type PythonError struct {
	// Tried is the command that was looked for or run.
	Tried string
	Cause error
}

func (e *PythonError) Error() string {
	return fmt.Sprintf("no Python to make an environment with: %s: %v: install Python 3.10 or newer with its venv module "+
		"(on Debian: apt-get install python3-venv), or name one with -python", e.Tried, e.Cause)
}

func (e *PythonError) Unwrap() error { return e.Cause }

// InstallError says that a release could not be installed.
type InstallError struct {
	Version string
	// Output are the last lines that the installer printed.
	Output string
	Cause  error
}

func (e *InstallError) Error() string {
	return fmt.Sprintf("installing langgraph %s: %v: %s: check that the release exists and that the package index can be "+
		"reached (pip reads PIP_INDEX_URL)", e.Version, e.Cause, e.Output)
}

func (e *InstallError) Unwrap() error { return e.Cause }

// environment is a virtual environment with one release of LangGraph.
type environment struct {
	version string
	folder  string
}

// readyFile stands in an environment whose installation has ended.
const readyFile = "ready"

// versions are the names of releases: what else is given to pip must not be read as an option or a path.
var versions = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*([a-z]+[0-9]+)?$`)

// install makes the environment of a release in the cache folder, or finds it there. An installation that was stopped
// half way is begun again.
func install(ctx context.Context, cache, python, version string, say func(string, ...any)) (*environment, error) {
	if !versions.MatchString(version) {
		return nil, fmt.Errorf("-version: %q names no release: 1.2.22 does", version)
	}
	e := &environment{version: version, folder: filepath.Join(cache, "langgraph-"+version)}
	if _, err := os.Stat(filepath.Join(e.folder, readyFile)); err == nil {
		return e, nil
	}
	found, err := exec.LookPath(python)
	if err != nil {
		return nil, &PythonError{Tried: python, Cause: err}
	}
	if err := os.RemoveAll(e.folder); err != nil {
		return nil, fmt.Errorf("clearing the environment: %w", err)
	}
	say("making an environment with langgraph %s in %s", version, e.folder)
	if out, err := run(ctx, found, "-m", "venv", e.folder); err != nil {
		return nil, &PythonError{Tried: found + " -m venv", Cause: fmt.Errorf("%w: %s", err, out)}
	}
	out, err := run(ctx, e.python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
		"langgraph=="+version)
	if err != nil {
		return nil, &InstallError{Version: version, Output: out, Cause: err}
	}
	if err := os.WriteFile(filepath.Join(e.folder, readyFile), nil, 0o600); err != nil {
		return nil, fmt.Errorf("marking the environment as ready: %w", err)
	}
	return e, nil
}

// python is the environment's interpreter.
func (e *environment) python() string { return filepath.Join(e.folder, "bin", "python") }

// run runs a program and returns the end of what it printed.
func run(ctx context.Context, program string, args ...string) (string, error) {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if ctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	return tail(out.String()), err
}

// tail are the last lines of a text, on one line.
func tail(text string) string {
	const lines = 4
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "; ")
}
