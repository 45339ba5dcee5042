package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver "sqlite", which the server's store uses too
)

// integrityBudget bounds how long a start looks for damage. It reads the whole
// file, some hundred megabytes a second, and a large one must not hold up a start.
const integrityBudget = 2 * time.Second

// prepareDatabase checks the file at dsn and lays it out if it is empty. All of
// it happens on a connection of its own, closed before the server opens the file.
func prepareDatabase(dsn, name string) error {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { _ = db.Close() }() // whatever it wrote is committed
	db.SetMaxOpenConns(1)

	if err := checkIntegrity(db, name); err != nil {
		return err
	}
	if err := useLog(db, name); err != nil {
		return err
	}
	return layOut(db, name)
}

// checkIntegrity refuses a file that SQLite cannot read. A file too large to be
// read within the budget counts as sound.
func checkIntegrity(db *sql.DB, name string) error {
	budget, cancel := context.WithTimeout(context.Background(), integrityBudget)
	defer cancel()
	var verdict string
	err := db.QueryRowContext(budget, "PRAGMA quick_check(1)").Scan(&verdict)
	if budget.Err() != nil {
		return nil
	}
	if err == nil && verdict != "ok" {
		err = errors.New(verdict)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read as an SQLite database: restore a copy, move it away to start afresh, or choose another --db: %w", name, err)
	}
	return nil
}

// useLog switches the file to a write-ahead log, which it remembers.
func useLog(db *sql.DB, name string) error {
	var mode string
	if err := db.QueryRow("PRAGMA journal_mode=wal").Scan(&mode); err != nil {
		return fmt.Errorf("cannot write to %s: close the programs that have it open, or choose another --db: %w", name, err)
	}
	if !strings.EqualFold(mode, "wal") {
		return fmt.Errorf("no write-ahead log for %s, perhaps because it is on a network file system: choose a --db on a local disk (journal mode is %q)", name, mode)
	}
	return nil
}

// foldLog writes what is in the write-ahead log into the database file and
// empties the log.
func foldLog(dsn, name string) error {
	db, err := sql.Open("sqlite", dsn+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return fmt.Errorf("open %s to fold its log: %w", name, err)
	}
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("fold the log of %s (nothing is lost, the next start reads it): %w", name, err)
	}
	return nil
}

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
