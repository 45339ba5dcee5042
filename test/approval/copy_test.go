package approval_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// TestACopyIsAllowedNothing: an approval that a thread asks for, and a token for its question, are not those of a copy of the thread,
// which asks for its own.
func TestACopyIsAllowedNothing(t *testing.T) {
	for name, runtime := range gatedRuntimes {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			id := testserver.Queue(t)
			th := g.graph.Thread(runtime(t, g), id)
			until := func(of string) func(*approval.Claims) {
				return func(c *approval.Claims) { c.Thread, c.ExpiresAt = of, time.Now().Add(10*time.Minute) }
			}
			result, err := th.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"))
			require.NoError(t, err)
			asked := result.Questions[0]
			copied, err := th.Copy(t.Context(), id+"-copy")
			require.NoError(t, err)
			at, err := copied.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, thread.StatusStopped, at.Status)
			require.Empty(t, at.Questions)
			require.Len(t, at.Next, 1)

			_, err = th.Approve(t.Context(), asked.ID, g.token(t, asked, "ann", until(id)))
			require.NoError(t, err)
			require.Len(t, g.paid, 1)
			result, err = copied.Invoke(t.Context(), nil, superstep.WithRequester("rita"))
			require.NoError(t, err)
			theirs := result.Questions[0]
			require.NotEqual(t, asked.ID, theirs.ID)
			_, err = copied.Approve(t.Context(), theirs.ID, g.token(t, asked, "ann", until(id)))
			require.ErrorIs(t, err, thread.ErrAnswerRefused)
			require.Len(t, g.paid, 1, "what was allowed to the one thread is not to the other")
			_, err = copied.Approve(t.Context(), theirs.ID, g.token(t, theirs, "ann", until(id+"-copy")))
			require.NoError(t, err)
			require.Len(t, g.paid, 2)
			require.Contains(t, audited(t, copied), approval.KindForked)
		})
	}
}
