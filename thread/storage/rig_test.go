package storage_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/thread/storage"
)

// opened is a storage in a directory of the test's own.
func opened(t *testing.T) (*storage.Storage, string) {
	t.Helper()
	return openedWith(t, storage.Options{})
}

// openedWith is opened with options.
func openedWith(t *testing.T, opts storage.Options) (*storage.Storage, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "values")
	s, err := storage.Files(dir, opts)
	require.NoError(t, err)
	return s, dir
}

// reopened is another process's storage in a directory: with nothing in memory.
func reopened(t *testing.T, dir string) *storage.Storage {
	t.Helper()
	s, err := storage.Files(dir, storage.Options{})
	require.NoError(t, err)
	return s
}

// words are n bytes of JSON that do not compress to nothing.
func words(n int, seed uint64) []byte {
	from := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, 0, n+64)
	out = append(out, '"')
	for len(out) < n-1 {
		out = fmt.Appendf(out, "%x ", from.Uint64())
	}
	return append(out[:n-1], '"')
}

func payload(data []byte) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain"), "of": []byte("a test")}, Data: data}
}

func store(ctx context.Context, s *storage.Storage, payloads ...*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	return s.External().Drivers[0].Store(converter.StorageDriverStoreContext{Context: ctx}, payloads)
}

func retrieve(ctx context.Context, s *storage.Storage, claims ...converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	return s.External().Drivers[0].Retrieve(converter.StorageDriverRetrieveContext{Context: ctx}, claims)
}

// lying are the files of a storage with their sizes, by their names.
func lying(t *testing.T, dir string) (files map[string]string, bytes int) {
	t.Helper()
	files = map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		bytes += int(info.Size())
		files[e.Name()] = path
		return err
	}))
	return files, bytes
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// digestOf is the name of an object with that content.
func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
