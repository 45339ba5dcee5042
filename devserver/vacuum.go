package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func vacuumCommand() *cobra.Command {
	var db string
	cmd := &cobra.Command{
		Use:   "vacuum",
		Short: "Overwrite in a database file what was erased",
		Long: "Write the database file anew without what was deleted from it: SQLite leaves\n" +
			"that in the file until something else takes its place. The server must be\n" +
			"stopped. It takes as much free disk space as the file has, and nothing is lost\n" +
			"when it is interrupted. PostgreSQL has VACUUM FULL for the same.",
		Example: "  go run ./devserver vacuum --db superstep.db",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return vacuum(db, busyTime, cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&db, "db", "superstep.db", "SQLite `file` of a server that is stopped")
	return cmd
}

// vacuum writes a database file anew. It takes the lock that a server holds, so none can use the file meanwhile.
func vacuum(db string, wait time.Duration, stdout io.Writer) (err error) {
	if _, err := os.Stat(db); errors.Is(err, fs.ErrNotExist) { // it would be created
		return fmt.Errorf("there is no %s: name the server's database by --db", db)
	}
	file, err := resolveFile(db)
	if err != nil {
		return err
	}
	s := &sqliteStore{db: db, file: file}
	if s.lock, err = lockFile(file, db); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.unlock()) }()
	before, after := int64(0), int64(0)
	if before, err = sizeOf(file); err == nil {
		err = rewrite(s.dsn(), db, wait)
	}
	if err == nil {
		if err = foldLog(s.dsn(), db, wait); err != nil {
			err = fmt.Errorf("what was deleted is still there, vacuum once more: %w", err)
		}
	}
	if err == nil {
		after, err = sizeOf(file)
	}
	if err == nil {
		fmt.Fprintf(stdout, "vacuumed %s: %d bytes, %d before\n", db, after, before)
	}
	return err
}

func sizeOf(file string) (int64, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// rewrite makes the indexes of words anew, which keep those of deleted rows, and then the file.
func rewrite(dsn, name string, wait time.Duration) (err error) {
	db, err := openWaiting(dsn, wait)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := checkIntegrity(db, name); err != nil {
		return err
	}
	words, err := wordIndexes(db)
	if err != nil {
		return fmt.Errorf("read the layout of %s: %w", name, err)
	}
	for _, table := range words {
		if _, err := db.Exec(fmt.Sprintf("INSERT INTO %q(%q) VALUES('rebuild')", table, table)); err != nil {
			return fmt.Errorf("make the index %s of %s anew: %w", table, name, err)
		}
	}
	if _, err := db.Exec("VACUUM"); err != nil {
		return fmt.Errorf("write %s anew: free some disk space (as much as the file has): %w", name, err)
	}
	return nil
}

// wordIndexes are the tables that index words.
func wordIndexes(db *sql.DB) (names []string, err error) {
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%' ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
