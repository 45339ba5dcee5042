package remote

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
)

// TestKeptOutputsAreBounded: beside a long list a client keeps decoded what else is large in an output, and counts that.
func TestKeptOutputsAreBounded(t *testing.T) {
	t.Parallel()
	var o outputs
	text := func(bytes int) string { return `"` + strings.Repeat("x", bytes) + `"` }
	list, large := pregel.Value("["+text(pregel.MinHad)+"]"), pregel.Value(text(1<<20))
	known := func() (n int) {
		for i := range 100 {
			if _, ok := o.of(fmt.Sprint("thread-", i)); ok {
				n++
			}
		}
		return n
	}
	for i := range 100 {
		o.keep(fmt.Sprint("thread-", i), pregel.HoldAll(map[string]pregel.Value{"list": list, "text": large}))
	}
	require.LessOrEqual(t, known(), outputBytes>>20)
	require.Greater(t, known(), outputBytes>>20-3)
	o.keep("thread-99", pregel.HoldAll(map[string]pregel.Value{"text": large}))
	_, ok := o.of("thread-99")
	require.False(t, ok, "an output without long lists is not kept")
}
