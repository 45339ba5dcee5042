package payments_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
)

// Everything survives the process: money, figures and what is left of faults.
func TestReopen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a ?#%.db")
	first := openRig(t, file, payments.ServerConfig{})
	want := refund(t, first.Client, "k", "o-7", 100)
	_, _, err := first.FindRefund(t.Context(), "k")
	require.NoError(t, err)
	_, _, err = first.FindRefund(t.Context(), "absent")
	require.NoError(t, err)
	_, err = first.PutOrder(t.Context(), payments.Order{ID: "o-1042", Amount: 1})
	require.NoError(t, err)
	require.NoError(t, first.SetFaults(t.Context(), payments.Faults{HangAfterCommit: 7}))
	before := stats(t, first.Client)
	require.FileExists(t, file)

	second := openRig(t, file, payments.ServerConfig{})
	require.Equal(t, before, stats(t, second.Client))
	require.EqualValues(t, 2, before.Refunds.Lookups)
	require.Equal(t, payments.KeyTraffic{Lookups: 1}, before.Refunds.ByKey["absent"])
	got, found, err := second.FindRefund(t.Context(), "k")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, want, got)
	order, err := second.Order(t.Context(), "o-1042")
	require.NoError(t, err)
	require.EqualValues(t, 1, order.Amount, "seeding does not replace an order")
	faults, err := second.Faults(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 7, faults[0].HangAfterCommit)
}

func TestOpenStoreRefusesForeignFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte(fmt.Sprintf("%01000d", 0)), 0o600))
	foreign := filepath.Join(dir, "foreign.db")
	execute(t, foreign, `CREATE TABLE mine (x)`)
	newer := filepath.Join(dir, "newer.db")
	openRig(t, newer, payments.ServerConfig{})
	execute(t, newer, `PRAGMA user_version = 2`)

	for file, want := range map[string]string{
		text:                             "not a database",
		foreign:                          "another program's database",
		newer:                            "newer than this program's",
		filepath.Join(dir, "no", "x.db"): "unable to open",
	} {
		_, err := payments.OpenStore(t.Context(), file)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, file)
		require.NotContains(t, err.Error(), "\n")
	}
}

func execute(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func TestStatsOfOneKey(t *testing.T) {
	r := newRig(t, payments.ServerConfig{})
	refund(t, r.Client, "a", "o-7", 1)
	refund(t, r.Client, "b", "o-7", 1)
	response := r.send(t, "GET", "/stats?key=b", "", "")
	var narrow payments.Stats
	require.NoError(t, json.NewDecoder(response.Body).Decode(&narrow))
	require.Equal(t, map[string]payments.KeyTraffic{"b": {Requests: 1, Committed: 1}}, narrow.Refunds.ByKey)
	require.EqualValues(t, 2, narrow.Refunds.Requests, "the totals stay whole")
	got := stats(t, r.Client).Refunds
	require.EqualValues(t, 2, got.Keys)
	require.Len(t, got.ByKey, 2)
}
