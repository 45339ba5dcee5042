package sqlite_test

import (
	"cmp"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/store"
	"superstep.dev/store/sqlite"
	"superstep.dev/store/storetest"
)

func open(t *testing.T, path string, opts store.Options) *store.Store {
	t.Helper()
	s, err := sqlite.Open(path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "store.db")
		return func(t *testing.T, opts store.Options) *store.Store {
			opts.Timeout = cmp.Or(opts.Timeout, time.Minute)
			return open(t, path, opts)
		}
	})
}
