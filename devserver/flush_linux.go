package main

import (
	"errors"
	"os"
	"syscall"
)

// flush returns when what is in a file is on the disk, with as much about the file as it takes to read it.
func flush(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
