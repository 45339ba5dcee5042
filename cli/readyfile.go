package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// readyFile is a file that exists while a worker takes tasks; it holds the worker's pid. "" is none.
type readyFile string

// write makes the file appear whole: whoever waits for it never reads half a pid.
func (f readyFile) write(pid int) error {
	if f == "" {
		return nil
	}
	temp, err := os.CreateTemp(filepath.Dir(string(f)), filepath.Base(string(f))+".*")
	if err != nil {
		return &notBegun{"--ready-file", err}
	}
	_, err = temp.WriteString(strconv.Itoa(pid) + "\n")
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), string(f))
	}
	if err != nil {
		os.Remove(temp.Name()) // what is left of the attempt; the error to report is the first one
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
