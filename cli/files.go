package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// writeWhole writes a file that is there only when it is whole: whoever waits for it never reads half of it.
func writeWhole(path string, write func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	if err = errors.Join(write(temp), temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name()) // what is left of the attempt; the error to report is the first one
	}
	return err
}

// readyFile is a file that exists while a worker takes tasks; it holds the worker's pid. "" is none.
type readyFile string

func (f readyFile) write(pid int) error {
	if f == "" {
		return nil
	}
	if err := writeWhole(string(f), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, pid)
		return err
	}); err != nil {
		return &notBegun{"--ready-file", err}
	}
	return nil
}

// remove takes the file away unless another worker has written it since: a successor may start while this one drains.
func (f readyFile) remove(pid int) {
	if f == "" {
		return
	}
	text, err := os.ReadFile(string(f))
	if err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(pid) {
		os.Remove(string(f)) // already gone is as good
	}
}
