package main

import (
	"database/sql"
	"fmt"
	"slices"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

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
	ns.Detail.Config.Retention = durationpb.New(retention) // the constructor says one day
	if err := sqlite.CreateNamespaces(cfg, ns); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	return nil
}
