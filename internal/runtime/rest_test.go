package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// What a view does not have of the output is there in both forms, and the view stays as it is.
func TestARestHasAllOfItsOutput(t *testing.T) {
	long := map[string]pregel.Held{"texts": pregel.Hold(pregel.Value(`["a","b"]`))}
	for _, given := range []map[string]pregel.Value{nil, {"step": pregel.Value(`2`)}} {
		rest := Rest{View: thread.View{Thread: "t-1", Output: given}, Long: long}
		want := map[string]pregel.Value{"texts": pregel.Value(`["a","b"]`)}
		if given != nil {
			want["step"] = given["step"]
		}
		require.Equal(t, want, rest.Whole().Output)
		require.Equal(t, pregel.HoldAll(want), rest.Held())
		require.Equal(t, given, rest.Output)
	}
	view := thread.View{Thread: "t-1", Output: map[string]pregel.Value{"step": pregel.Value(`2`)}}
	require.Equal(t, view, Rest{View: view}.Whole())
}
