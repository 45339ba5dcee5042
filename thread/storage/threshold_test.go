package storage_test

import (
	"bytes"
	"cmp"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"superstep.dev/thread/storage"
)

// ofSize is a value of which the payload, of Temporal's own converter, has exactly that many bytes as the server gets them.
func ofSize(t *testing.T, size int) []byte {
	t.Helper()
	value := bytes.Repeat([]byte{'v'}, size)
	for range 3 { // how long a length is depends on it
		p, err := converter.GetDefaultDataConverter().ToPayload(value)
		require.NoError(t, err)
		if proto.Size(p) == size {
			return value
		}
		value = value[:len(value)-(proto.Size(p)-size)]
	}
	t.Fatalf("no payload has %d bytes", size)
	return nil
}

// TestTheThreshold: a payload that is one byte smaller stays where it is, and from the threshold on each is stored; by the converter, and
// by what a Temporal client is given.
func TestTheThreshold(t *testing.T) {
	t.Parallel()
	require.Equal(t, 16<<10, storage.DefaultThreshold, "which the documentation names")
	for _, set := range []int{-1, 0, storage.DefaultThreshold, 1000, 100_000} {
		edge := cmp.Or(max(0, set), storage.DefaultThreshold)
		for _, size := range []int{edge - 1, edge, edge + 1} {
			t.Run(fmt.Sprintf("%d bytes at %d", size, set), func(t *testing.T) {
				t.Parallel()
				s, dir := openedWith(t, storage.Options{Threshold: set})
				assert.Equal(t, edge, s.External().PayloadSizeThreshold)
				value := ofSize(t, size)
				plain, err := converter.GetDefaultDataConverter().ToPayload(value)
				require.NoError(t, err)
				c := s.Converter(converter.GetDefaultDataConverter())
				one, err := c.ToPayload(value)
				require.NoError(t, err)
				all, err := c.ToPayloads("small", value)
				require.NoError(t, err)
				assert.Contains(t, string(all.Payloads[0].GetData()), "small")
				assert.True(t, proto.Equal(one, all.Payloads[1]))
				files, _ := lying(t, dir)
				if size < edge {
					assert.True(t, proto.Equal(plain, one), "it goes as it is")
					assert.Empty(t, files)
				} else {
					require.Len(t, one.GetExternalPayloads(), 1)
					assert.EqualValues(t, size, one.GetExternalPayloads()[0].GetSizeBytes())
					assert.Less(t, proto.Size(one), 600)
					assert.NotEmpty(t, files)
				}
				var back []byte
				require.NoError(t, c.FromPayload(one, &back))
				assert.Equal(t, value, back)
				assert.LessOrEqual(t, proto.Size(one), storage.Takes(c, size)+len("metadata encoding binary/plain")+20, "what goes as it is has its encoding beside it")
			})
		}
	}
}
