package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeReadyFile puts the address and a newline in the file, whole or not at
// all: a reader that polls never sees half an address. An empty name is none.
func writeReadyFile(name, addr string) (err error) {
	if name == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("payments: ready file %s: %w", name, err)
		}
	}()
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, writing := file.WriteString(addr + "\n")
	if err := errors.Join(writing, file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// removeReadyFile takes the file away; a missing one is fine.
func removeReadyFile(name string) error {
	if name == "" {
		return nil
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("payments: ready file: %w", err)
	}
	return nil
}
