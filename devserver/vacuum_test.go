package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestVacuum: what was deleted from the file is not in it any more, neither are deleted words in its index; a file that a server has is
// left alone, and none is made.
func TestVacuum(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "superstep.db")
	var out, errs bytes.Buffer
	require.Equal(t, 1, execute([]string{"vacuum", "--db", file}, &out, &errs))
	require.Contains(t, errs.String(), "there is no ")
	require.NoFileExists(t, file)

	store, err := openStore(context.Background(), options{db: file})
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	for _, statement := range []string{
		"CREATE TABLE said (text TEXT)", "INSERT INTO said VALUES('" + strings.Repeat("marker-of-a-row ", 1000) + "')",
		"CREATE VIRTUAL TABLE words USING fts5(text, content='said')", "INSERT INTO words(rowid, text) VALUES(1, 'markerofaword')",
		"DELETE FROM said",
	} {
		_, err = db.Exec(statement)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	errs.Reset()
	require.Equal(t, 1, execute([]string{"vacuum", "--db", file}, &out, &errs))
	require.Contains(t, errs.String(), "is in use")
	require.NoError(t, store.close())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "marker-of-a-row")

	require.Equal(t, 0, execute([]string{"vacuum", "--db", file}, &out, &errs), errs.String())
	require.Contains(t, out.String(), "vacuumed ")
	for _, path := range []string{file, file + "-wal"} {
		text, _ := os.ReadFile(path) // the log may be gone
		require.NotContains(t, string(text), "marker-of-a-row")
		require.NotContains(t, string(text), "markerofaword")
	}
}

// TestVacuumBesideAReader: as long as another program reads the file, what was deleted stays there. That is an error, and the log is folded
// once the program is gone.
func TestVacuumBesideAReader(t *testing.T) {
	file := filepath.Join(t.TempDir(), "superstep.db")
	store, err := openSQLite(file)
	require.NoError(t, err)
	db, err := sql.Open("sqlite", store.dsn())
	require.NoError(t, err)
	for _, statement := range []string{"CREATE TABLE said (text TEXT)", "INSERT INTO said VALUES('" + strings.Repeat("marker-of-a-row ", 1000) + "')"} {
		_, err = db.Exec(statement)
		require.NoError(t, err)
	}
	require.NoError(t, store.close())
	reading, err := db.Begin()
	require.NoError(t, err)
	var rows int
	require.NoError(t, reading.QueryRow("SELECT count(*) FROM said").Scan(&rows))
	other, err := sql.Open("sqlite", store.dsn())
	require.NoError(t, err)
	_, err = other.Exec("DELETE FROM said")
	require.NoError(t, err)
	require.NoError(t, other.Close())

	const soon = time.Millisecond
	var out bytes.Buffer
	require.ErrorContains(t, vacuum(file, soon, &out), "close the programs that have it open")
	require.Empty(t, out.String())
	require.ErrorContains(t, foldLog(store.dsn(), file, soon), "close the programs that have it open")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "marker-of-a-row")

	require.NoError(t, reading.Rollback())
	require.NoError(t, db.Close())
	require.NoError(t, vacuum(file, soon, &out))
	require.Contains(t, out.String(), "vacuumed ")
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "marker-of-a-row")
}
