package storage_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/thread/storage"
)

// storeOf stores a value of a thread.
func storeOf(t *testing.T, s *storage.Storage, thread string, data []byte) converter.StorageDriverClaim {
	t.Helper()
	claims, err := s.External().Drivers[0].Store(converter.StorageDriverStoreContext{Context: t.Context(),
		Target: converter.StorageDriverWorkflowInfo{Namespace: "default", WorkflowID: thread}}, []*commonpb.Payload{payload(data)})
	require.NoError(t, err)
	return claims[0]
}

// TestASpaceIsEmptied: what one thread has stored goes, in any number of tries, and what others have stays, also where it is the same;
// a thread of that name stores it anew, also in a process that had it in memory.
func TestASpaceIsEmptied(t *testing.T) {
	s, dir := opened(t)
	data := words(300_000, 1)
	mine, other := storeOf(t, s, "r-7", data), storeOf(t, s, "r-8", data)
	space := storage.SpaceOf("default", "r-7")
	lie, err := s.List(t.Context(), space)
	require.NoError(t, err)
	require.Greater(t, len(lie), 2)
	for _, o := range lie {
		raw, err := s.Raw(t.Context(), o.Name)
		require.NoError(t, err)
		assert.Len(t, raw, int(o.Bytes))
	}

	require.NoError(t, os.Remove(filepath.Join(dir, space[:2], lie[0].Name))) // somebody was killed half way
	var gone []storage.Object
	require.NoError(t, s.Empty(t.Context(), space, func(o storage.Object) { gone = append(gone, o) }))
	assert.ElementsMatch(t, lie[1:], gone)
	require.NoError(t, s.Empty(t.Context(), space, func(storage.Object) { t.Error("it was removed") }))
	lie, err = s.List(t.Context(), space)
	require.NoError(t, err)
	assert.Empty(t, lie)
	for _, process := range []*storage.Storage{s, reopened(t, dir)} {
		_, err = retrieve(t.Context(), process, mine)
		require.ErrorIs(t, err, storage.ErrMissing)
		got, err := retrieve(t.Context(), process, other)
		require.NoError(t, err)
		assert.Equal(t, data, got[0].GetData())
	}

	assert.Equal(t, mine, storeOf(t, s, "r-7", data))
	_, err = retrieve(t.Context(), reopened(t, dir), mine)
	require.NoError(t, err)
}

// TestAJobHasOneSpace: a leader and its attempts refer to each other's values.
func TestAJobHasOneSpace(t *testing.T) {
	assert.Equal(t, storage.SpaceOf("default", "job/r-3"), storage.SpaceOf("default", "job/r-3/s/first/a1"))
	assert.NotEqual(t, storage.SpaceOf("default", "job/r-3"), storage.SpaceOf("default", "job/r-30"))
	assert.NotEqual(t, storage.SpaceOf("default", "r-3"), storage.SpaceOf("other", "r-3"))
}

// TestADirectoryThatIsAwayIsNotEmpty: nothing is said to be erased that nobody has looked at.
func TestADirectoryThatIsAwayIsNotEmpty(t *testing.T) {
	s, dir := opened(t)
	storeOf(t, s, "r-7", words(20_000, 1))
	require.NoError(t, os.Rename(dir, dir+"-unmounted"))
	_, err := s.List(t.Context(), storage.SpaceOf("default", "r-7"))
	require.ErrorIs(t, err, storage.ErrUnavailable)
	require.ErrorIs(t, s.Empty(t.Context(), storage.SpaceOf("default", "r-7"), func(storage.Object) {}), storage.ErrUnavailable)
}
