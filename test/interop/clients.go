package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

// folder is where clients are installed, below the root of the repository.
const folder = ".interop"

// files are what is written there: what to install, and the scenarios.
//
//go:embed requirements.txt package.json scenarios.py remote.py scenarios.mjs
var files embed.FS

// clients are the installed clients.
type clients struct {
	dir, python string
}

// install installs what is not installed yet. Programs that are there already are taken without asking a registry.
func install(ctx context.Context, set *processes.Set, kit string, log io.Writer) (clients, error) {
	root, err := stack.Root(ctx)
	if err != nil {
		return clients{}, err
	}
	c := clients{dir: filepath.Join(root, folder)}
	c.python = filepath.Join(c.dir, "venv", "bin", "python")
	names, err := files.ReadDir(".")
	if err != nil {
		return c, err
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return c, err
	}
	for _, name := range names {
		content, err := files.ReadFile(name.Name())
		if err == nil {
			err = os.WriteFile(filepath.Join(c.dir, name.Name()), content, 0o644)
		}
		if err != nil {
			return c, err
		}
	}
	i := installing{set, log}
	err = i.once(ctx, c.dir, "requirements.txt", []string{"python3", "-m", "venv", "--clear", "venv"},
		[]string{c.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"})
	if err == nil {
		err = i.once(ctx, c.dir, "package.json", npm)
	}
	if err == nil && kit != "" {
		err = c.takeKit(ctx, i, kit)
	}
	return c, err
}

var npm = []string{"npm", "install", "--legacy-peer-deps", "--no-audit", "--no-fund", "--loglevel=error"}

// kit is the folder of the kit's copy.
func (c clients) kit() string { return filepath.Join(c.dir, "kit") }

// takeKit copies a kit, whose own folder stays as it is, and installs what it names.
func (c clients) takeKit(ctx context.Context, i installing, from string) error {
	entries, err := os.ReadDir(c.kit())
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if e.Name() != "node_modules" && e.Name() != "package.json"+installed {
			if err := os.RemoveAll(filepath.Join(c.kit(), e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.CopyFS(c.kit(), os.DirFS(from)); err != nil {
		return fmt.Errorf("copy the kit %s: %w", from, err)
	}
	return i.once(ctx, c.kit(), "package.json", npm)
}

// installing runs what installs.
type installing struct {
	set *processes.Set
	log io.Writer
}

// installed ends the name of the copy of a list whose programs are all there.
const installed = ".installed"

// once runs commands in a folder unless they have been run there for the same list.
func (i installing) once(ctx context.Context, dir, list string, commands ...[]string) error {
	path := filepath.Join(dir, list)
	wanted, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if had, err := os.ReadFile(path + installed); err == nil && bytes.Equal(had, wanted) {
		return nil
	}
	for _, c := range commands {
		fmt.Fprintln(i.log, "installing:", c[len(c)-1], "in", dir)
		limited, done := context.WithTimeout(ctx, 5*time.Minute)
		code, err := i.set.Run(limited, processes.Command{Name: "install", Path: c[0], Args: c[1:], Dir: dir})
		done()
		if err == nil && code != 0 {
			err = fmt.Errorf("exit code %d", code)
		}
		if err != nil {
			return fmt.Errorf("install what %s names: %w\n%s", path, err, i.set.Tail("install", 20))
		}
	}
	return os.WriteFile(path+installed, wanted, 0o644)
}
