package store_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/store"
)

// TestProcessesWriteAtOnce lets processes write the same item and items of their own. One of them is killed: what it was told is written is
// written.
func TestProcessesWriteAtOnce(t *testing.T) {
	places(t, func(t *testing.T, place string) {
		s := awaitOpen(t, place)
		const each = 100
		var writers []*process
		for i := range 3 {
			writers = append(writers, start(t, child{Place: place, Writer: fmt.Sprint(i), Writes: each}))
		}
		killed := start(t, child{Place: place, Writer: "killed", Writes: 1_000_000})
		for _, w := range writers {
			select {
			case <-w.ended:
			case <-time.After(testPatience):
				t.Fatal("a writer does not end")
			}
			require.Zero(t, w.ProcessState.ExitCode(), w.output)
		}
		require.Eventually(t, func() bool { // it says each before it writes the next
			_, err := s.Get(t.Context(), []string{"own", "killed"}, "1")
			return err == nil
		}, testPatience, 10*time.Millisecond)
		killed.kill(t)
		said := strings.Fields(killed.output.String())
		require.NotEmpty(t, said)
		last, err := strconv.Atoi(said[len(said)-1])
		require.NoError(t, err, "%s", killed.output)

		namespaces, err := s.Namespaces(t.Context(), store.NamespaceQuery{Prefix: []string{"own"}})
		require.NoError(t, err)
		require.Len(t, namespaces, 4)
		_, err = s.Get(t.Context(), []string{"own", "killed"}, fmt.Sprint(last))
		require.NoError(t, err)
		for i := range 3 {
			hits, err := s.Search(t.Context(), []string{"own", fmt.Sprint(i)}, store.Query{Limit: store.MaxLimit})
			require.NoError(t, err)
			require.Len(t, hits, each)
		}
		shared, err := s.Get(t.Context(), []string{"shared"}, "item")
		require.NoError(t, err)
		require.GreaterOrEqual(t, shared.Version, int64(3*each+last+1), "no write is lost")
		require.LessOrEqual(t, shared.Version, int64(3*each+last+3), "none is there twice")
	})
}
