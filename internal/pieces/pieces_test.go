package pieces

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPiecesAreThoseOfTheContent: they come to the data, are no larger than they may be, and most of them stay what they are
// when something is inserted.
func TestPiecesAreThoseOfTheContent(t *testing.T) {
	data := make([]byte, 2<<20)
	_, err := rand.NewChaCha8([32]byte{7}).Read(data)
	require.NoError(t, err)
	whole, err := Cut(data, Polynomial)
	require.NoError(t, err)
	require.Equal(t, data, bytes.Join(whole, nil))
	known := map[[32]byte]bool{}
	for _, piece := range whole {
		require.LessOrEqual(t, len(piece), Most)
		known[sha256.Sum256(piece)] = true
	}
	require.Greater(t, len(whole), 20)

	longer, err := Cut(append([]byte("inserted"), data...), Polynomial)
	require.NoError(t, err)
	changed := 0
	for _, piece := range longer {
		if !known[sha256.Sum256(piece)] {
			changed++
		}
	}
	require.LessOrEqual(t, changed, 2)
}
