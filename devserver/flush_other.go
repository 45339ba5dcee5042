//go:build !linux

package main

import "os"

// flush returns when what is in a file is on the disk.
func flush(f *os.File) error { return f.Sync() }
