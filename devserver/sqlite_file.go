package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
	_ "modernc.org/sqlite" // the driver "sqlite", which the server's store uses too
)

// integrityBudget bounds how long a start looks for damage. It reads the whole
// file, some hundred megabytes a second, and a large one must not hold up a start.
const integrityBudget = 2 * time.Second

// pageBytes is the page size of a new file. A turn of a conversation makes two
// rows of the history, of some 2.5 KiB together: in SQLite's pages of 4 KiB every
// turn would take one, a third of it empty. It has no effect on a file that has a
// log already.
const pageBytes = "8192"

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
	if _, err := db.Exec("PRAGMA page_size=" + pageBytes); err != nil {
		return fmt.Errorf("choose the page size of %s: %w", name, err)
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

// busyTime is how long is waited for other programs that are using a file.
const busyTime = 5 * time.Second

// foldLog writes what is in the write-ahead log into the database file and
// empties the log. SQLite calls it no error when another program keeps it from
// that, and says it in the result.
func foldLog(dsn, name string, wait time.Duration) error {
	db, err := openWaiting(dsn, wait)
	if err != nil {
		return fmt.Errorf("open %s to fold its log: %w", name, err)
	}
	var busy, pages, folded int
	err = db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &folded)
	if err == nil && busy != 0 {
		err = errors.New("another program is using it: close the programs that have it open")
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("fold the log of %s (nothing is lost, the next start reads it): %w", name, err)
	}
	return nil
}

// openWaiting opens a database for this process alone, with one connection that
// waits for other programs that are using the file.
func openWaiting(dsn string, wait time.Duration) (*sql.DB, error) {
	db, err := sql.Open("sqlite", fmt.Sprintf("%s?_pragma=busy_timeout(%d)", dsn, wait.Milliseconds()))
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
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

// This file holds every use of go.temporal.io/server/schema/sqlite, whose authors
// reserve the right to change or remove it.

// layOut creates the server's tables in an empty database, and refuses one whose
// tables are not those that this version of the server needs.
func layOut(db *sql.DB, name string) error {
	have, err := columns(db)
	if err != nil {
		return fmt.Errorf("read the layout of %s: %w", name, err)
	}
	if len(have) == 0 {
		return createTables(db, name)
	}
	want, err := wantedColumns()
	if err != nil {
		return err
	}
	for _, column := range want {
		if _, found := slices.BinarySearch(have, column); !found {
			return fmt.Errorf("%s is not a database of this Temporal server version (it has no %s): choose another --db", name, column)
		}
	}
	return nil
}

// createTables runs the server's schema in one transaction. A start that is
// killed in the middle leaves an empty database, not half of one.
func createTables(db *sql.DB, name string) error {
	tx, err := db.Begin()
	if err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	defer func() { _ = tx.Rollback() }() // without effect once committed
	if err := sqlite.SetupSchemaOnDB(schemaTx{tx: tx}); err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	if err := dropIndexes(tx); err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("set up %s: free some disk space, or choose another --db: %w", name, err)
	}
	return nil
}

// schemaTx lets the schema be set up within a transaction. The setup calls Exec
// only; any other method would panic on the nil interface.
type schemaTx struct {
	sqlplugin.AdminDB
	tx *sql.Tx
}

// Exec runs one statement of the schema.
func (s schemaTx) Exec(stmt string, args ...any) error {
	_, err := s.tx.Exec(stmt, args...)
	return err
}

// wantedColumns are the columns of a new database.
func wantedColumns() ([]string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, fmt.Errorf("lay out a database to compare with: %w", err)
	}
	defer func() { _ = db.Close() }() // in memory: nothing to lose
	db.SetMaxOpenConns(1)             // each connection would see a database of its own
	if err := createTables(db, "a database to compare with"); err != nil {
		return nil, err
	}
	return columns(db)
}

// columns lists the columns of every table as "table.column", sorted.
func columns(db *sql.DB) ([]string, error) {
	rows, err := db.Query(`SELECT t.name || '.' || c.name
		FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c
		WHERE t.type = 'table' ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err below has the error of reading
	var all []string
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			return nil, err
		}
		all = append(all, column)
	}
	return all, rows.Err()
}

// createNamespace writes the namespace into the database unless it is there
// already. Doing it before the server starts makes namespace and search
// attributes usable from the first call, where registering them through the API
// takes until the server's caches expire.
func createNamespace(cfg *config.SQL) error {
	ns, err := sqlite.NewNamespaceConfig(clusterName, namespace, false, searchAttributes())
	if err != nil {
		return fmt.Errorf("describe namespace %s: %w", namespace, err)
	}
	ns.Detail.Config.Retention = durationpb.New(retention)            // the constructor says one day
	ns.Detail.Config.CustomSearchAttributeAliases = attributeFields() // the constructor takes any column
	if err := sqlite.CreateNamespaces(cfg, ns); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	return nil
}
