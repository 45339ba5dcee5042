package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// readyFile is the file that tells scripts that the server is ready. The empty
// path stands for none.
type readyFile string

// remove takes the file away, whoever left it.
func (r readyFile) remove() error {
	if r == "" {
		return nil
	}
	if err := os.Remove(string(r)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the ready file: choose another --ready-file: %w", err)
	}
	return nil
}

// prepare takes a file that was left behind away and finds out whether there can
// be one: better now than when the server has started.
func (r readyFile) prepare() error {
	if err := r.remove(); err != nil || r == "" {
		return err
	}
	temp, err := r.temp("")
	if err != nil {
		return err
	}
	if err := os.Remove(temp); err != nil {
		return r.failed(err)
	}
	return nil
}

// write makes the file appear whole: its content is addr and nothing else, not
// even a newline.
func (r readyFile) write(addr string) error {
	if r == "" {
		return nil
	}
	temp, err := r.temp(addr)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, string(r)); err != nil {
		return errors.Join(r.failed(err), os.Remove(temp))
	}
	return nil
}

// temp writes a file beside it.
func (r readyFile) temp(content string) (name string, err error) {
	temp, err := os.CreateTemp(filepath.Dir(string(r)), filepath.Base(string(r))+".*")
	if err != nil {
		return "", r.failed(err)
	}
	_, err = temp.WriteString(content)
	if err = errors.Join(err, temp.Close()); err != nil {
		return "", errors.Join(r.failed(err), os.Remove(temp.Name()))
	}
	return temp.Name(), nil
}

func (r readyFile) failed(err error) error {
	return fmt.Errorf("write the ready file: choose a --ready-file in a directory that exists and is writable: %w", err)
}
