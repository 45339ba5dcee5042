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

// TestOnlyTextIsSent: what is no UTF-8 is refused before anything is sent, wherever it stands.
func TestOnlyTextIsSent(t *testing.T) {
	for _, c := range []struct {
		args []string
		what string
	}{
		{[]string{"inbox", "--group", "\xff"}, "--group"},
		{[]string{"inbox", "--approver", "a\xff"}, "--approver"},
		{[]string{"event", "r-7", "x", "--id", "\xff"}, "--id"},
		{[]string{"event", "r-7", "\xff"}, "NAME"},
		{[]string{"resume", "r-7", "--value", "1", "--id", "\xff"}, "--id"},
		{[]string{"update", "r-7", "--values", "{}", "--id", "\xff"}, "--id"},
		{[]string{"cancel", "r-7", "--reason", "\xff"}, "--reason"},
		{[]string{"pause", "r-7", "--by", "\xff"}, "--by"},
		{[]string{"run", "refund", "--requester", "\xff"}, "--requester"},
		{[]string{"run", "refund", "--interrupt-before", "a,\xff"}, "--interrupt-before"},
		{[]string{"list", "--namespace", "\xff"}, "--namespace"},
	} {
		s := &script{}
		a, _, stderr := testApp(t, s, "")
		require.Equal(t, ExitUsage, a.run(t.Context(), c.args), "%q", c.args)
		require.Contains(t, stderr.String(), c.what+" is not UTF-8")
		require.Empty(t, s.asked)
	}
	a, _, stderr := testApp(t, &script{}, "")
	require.Equal(t, ExitUsage, a.run(t.Context(), []string{"run", "refund", "--input", "@\xff"}))
	require.Contains(t, stderr.String(), "cannot read the file", "a file may be called anything")
}
