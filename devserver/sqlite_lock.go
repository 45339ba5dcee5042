package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// lockSuffix names the file beside the database that is locked in its stead:
// SQLite's own locks come and go with its transactions. The file stays behind,
// since removing it would let two processes lock two files of the same name.
const lockSuffix = ".lock"

// lockFile takes the lock of a database file, or says which process has it. The
// lock ends with the process, however that ends.
func lockFile(file, db string) (*flock.Flock, error) {
	path := file + lockSuffix
	lock := flock.New(path)
	got, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s by %s: make the directory writable, or choose another --db: %w", db, path, err)
	}
	if !got {
		return nil, fmt.Errorf("%s is in use by another devserver%s: stop that one, or choose another --db", db, holder(path))
	}
	// Only a hint for the message above: the lock holds without it.
	_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600)
	return lock, nil
}

// holder says which process wrote the lock file, or nothing when it cannot tell.
func holder(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	pid := strings.TrimSpace(string(content))
	if _, err := strconv.Atoi(pid); err != nil {
		return ""
	}
	return " (process " + pid + ")"
}
