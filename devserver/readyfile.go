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

// write makes the file appear whole: its content is addr and nothing else, not
// even a newline.
func (r readyFile) write(addr string) error {
	if r == "" {
		return nil
	}
	temp, err := os.CreateTemp(filepath.Dir(string(r)), filepath.Base(string(r))+".*")
	if err != nil {
		return r.failed(err)
	}
	_, err = temp.WriteString(addr)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), string(r))
	}
	if err != nil {
		return errors.Join(r.failed(err), os.Remove(temp.Name()))
	}
	return nil
}

func (r readyFile) failed(err error) error {
	return fmt.Errorf("write the ready file: choose a --ready-file in a directory that exists and is writable: %w", err)
}
