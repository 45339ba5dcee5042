package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/store"
)

// recalls notes where somebody lives by what the store has of them, and counts its visits there.
func recalls() *superstep.Graph[work] {
	return oneNode("recalls", func(ctx context.Context, s work) (work, error) {
		memory, err := superstep.StoreFrom(ctx)
		if err != nil {
			return s, err
		}
		var known struct{ City string }
		var visits struct {
			N int `json:"n"`
		}
		user := []string{"users", s.Note.Get()}
		item, err := memory.Get(ctx, user, "preferences")
		if err == nil {
			err = item.Decode(&known)
		}
		if err != nil {
			return s, err
		}
		if item, err = memory.Get(ctx, user, "visits"); err == nil {
			err = item.Decode(&visits)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return s, err
		}
		visits.N++
		s.Log.Append(known.City)
		return s, memory.Put(ctx, user, "visits", visits)
	})
}

// Workers and commands that are told nothing share the store where the server says; what does not reach it says so, and does without when it
// is told to. Told of another store, all use that.
func TestStoreOnTheCommandLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	r := newRigAt(t, testserver.Start(t, testserver.Options{Store: dir}).Address())
	worker := r.graphsWorker("worker-1")
	r.exits(0, r.superstep("store", "put", "users.42", "preferences", "--value", `{"city":"Berlin","age":33}`))
	input := `{"note":"42"}`
	for range 2 { // two threads
		require.Contains(t, r.exits(0, r.superstep("run", "recalls", "--thread", testserver.Queue(t), "--input", input, "--follow")).stdout, "Berlin")
	}
	require.Contains(t, r.exits(0, r.superstep("store", "get", "users.42", "preferences")).stdout, `"age": 33`)
	require.Contains(t, r.exits(0, r.superstep("store", "get", "users.42", "visits")).stdout, `"n": 2`)
	require.Contains(t, r.exits(0, r.superstep("store", "search", "users", "--filter", `{"city":"Berlin","age":{"$gte":18}}`)).stdout, "preferences")
	require.Equal(t, "users.42\n", r.exits(0, r.superstep("store", "namespaces", "--prefix", "users.*")).stdout)
	r.exits(0, r.superstep("store", "delete", "users.42", "preferences"))
	require.Contains(t, r.exits(4, r.superstep("store", "get", "users.42", "preferences")).stderr, "there is no such item")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "id"), []byte("of another machine"), 0o600))
	told := r.exits(2, r.superstep("store", "search"))
	require.Contains(t, told.stderr, "another machine's in the same place")
	require.Contains(t, told.stderr, "--store none")

	r.kill(worker)
	file := filepath.Join(t.TempDir(), "own.db")
	r.exits(0, r.superstep("store", "put", "users.42", "preferences", "--value", `{"city":"Rome"}`, "--store", file))
	r.env = []string{"SUPERSTEP_STORE=" + file}
	r.graphsWorker("worker-2")
	require.Contains(t, r.exits(0, r.superstep("run", "recalls", "--thread", testserver.Queue(t), "--input", input, "--follow")).stdout, "Rome")
	require.Contains(t, r.exits(0, r.superstep("store", "get", "users.42", "visits", "--store", file)).stdout, `"n": 1`)
}
