package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"superstep.dev/thread"
)

func TestThreadIDs(t *testing.T) {
	for _, good := range []string{"r", "r-7", "job/report-3", "it's me", "order:7", strings.Repeat("x", 200)} {
		require.NoError(t, checkThread(good), good)
	}
	for _, bad := range []string{"", " ", "   ", ".", "..", " r", "r ", "日本", "ä-7", "-r", "a\nb", "a\x00", "a\u202eb", "\xff", strings.Repeat("x", 201), strings.Repeat("ä", 101)} {
		require.ErrorIs(t, checkThread(bad), thread.ErrBadInput, bad)
	}
}

func TestNewThread(t *testing.T) {
	a, seen := newApp(nil, io.Discard, io.Discard, Program{}), map[string]bool{}
	for range 1000 {
		id := a.newThread("refund")
		require.Regexp(t, `^refund-[a-z2-7]{26}$`, id) // 130 bits
		require.False(t, seen[id])
		seen[id] = true
	}
	for _, graph := range []string{strings.Repeat("x", 200), strings.Repeat("ä", 100), ""} {
		require.Regexp(t, `^thread-[a-z2-7]{26}$`, a.newThread(graph))
	}
	for _, bad := range []string{"", "a.b", "-a", "a\tb", "\xff", strings.Repeat("x", 201)} {
		require.ErrorIs(t, checkGraphName(bad), thread.ErrBadInput, bad)
	}
}
