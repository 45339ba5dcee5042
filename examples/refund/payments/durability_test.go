package payments

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An acknowledged commit is on disk: the settings that make it so are read back
// from the connection, since a misspelt pragma is silently ignored.
func TestDurabilitySettings(t *testing.T) {
	store, err := OpenStore(t.Context(), filepath.Join(t.TempDir(), "p.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000",
	} {
		var got string
		require.NoError(t, store.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
}

func TestCents(t *testing.T) {
	for amount, want := range map[int64]string{
		0: "0.00", 5: "0.05", 25_000: "250.00", -1: "-0.01", -250: "-2.50",
		-9223372036854775808: "-92233720368547758.08",
	} {
		require.Equal(t, want, cents(amount))
	}
}
