package secret_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"

	"superstep.dev/thread/secret"
)

// day is when the keys of tests are made.
var day = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// ring has one key for each id, an hour apart.
func ring(t *testing.T, ids ...string) (r secret.Ring) {
	t.Helper()
	for i, id := range ids {
		var err error
		at := day.Add(time.Duration(i) * time.Hour)
		r, _, err = r.Rotate(id, at, at)
		require.NoError(t, err)
	}
	return r
}

// written is a key file.
func written(t *testing.T, r secret.Ring) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	replace(t, path, r.Text())
	return path
}

// replace replaces a file as a whole.
func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func keysOf(t *testing.T, r secret.Ring) *secret.Keys {
	t.Helper()
	keys, err := secret.File(written(t, r), secret.Options{})
	require.NoError(t, err)
	return keys
}

// words are n bytes that do not compress to nothing.
func words(n int, seed uint64) []byte {
	from := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, 0, n+64)
	for len(out) < n {
		out = fmt.Appendf(out, "%x ", from.Uint64())
	}
	return out[:n]
}

func payload(data []byte) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain"), "of": []byte("a test")}, Data: data}
}

func encode(t *testing.T, keys *secret.Keys, p *commonpb.Payload) *commonpb.Payload {
	t.Helper()
	out, err := keys.Codec().Encode([]*commonpb.Payload{p})
	require.NoError(t, err)
	require.Len(t, out, 1)
	return out[0]
}

func decode(keys *secret.Keys, p *commonpb.Payload) (*commonpb.Payload, error) {
	out, err := keys.Codec().Decode([]*commonpb.Payload{p})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}
