package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/store"
	"superstep.dev/store/storetest"
)

// TestMemory runs the suite on a backend in memory, which all openings share.
func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Opener {
		backend := store.Memory()
		return func(t *testing.T, opts store.Options) *store.Store {
			s, err := store.New(backend, opts)
			require.NoError(t, err)
			return s
		}
	})
}
