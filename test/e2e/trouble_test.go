package e2e_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the server's database

	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// A server that cannot write its database says so itself: nobody is told that no worker answers, or that there is no server.
func TestAServerThatCannotStoreIsNoMissingWorker(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "server.db")
	r := newRigAt(t, testserver.Start(t, testserver.Options{DB: file}).Address())
	r.graphsWorker("worker")
	waiting := r.begin("asks", r.steered())
	colour := r.wait(waiting, thread.StatusWaiting).Questions[0].ID

	// The server writes now and then, and has the file for that long.
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(120000)")
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec("BEGIN IMMEDIATE") // from here on nobody else writes
	require.NoError(t, err)
	cannotStore := func(said string) {
		require.Contains(t, said, "the Temporal server is there and cannot do its work")
		require.NotContains(t, said, "worker")
	}
	for _, args := range [][]string{
		{"run", "adds", "--thread", testserver.Queue(t), "--input", `{"note": "x"}`},
		{"resume", waiting, colour, "--value", `"blue"`},
	} {
		cannotStore(r.exits(6, r.superstep(args...)).stderr)
	}
	// What only reads is answered where the server has the run in memory and need store nothing for it.
	if shown := r.superstep("show", waiting, "-o", "json"); shown.code == 0 {
		require.Contains(t, shown.stdout, colour)
	} else {
		cannotStore(r.exits(6, shown).stderr)
	}
	_, err = db.Exec("ROLLBACK")
	require.NoError(t, err)
	r.untilAnswered(waiting, colour, "blue")
}
