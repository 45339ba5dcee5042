package superstep_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// TestARefusedBranchFromEarlierLosesNothing: an update of an earlier checkpoint that fails in a branch function leaves a
// finished thread as it was, with all that came after that checkpoint.
func TestARefusedBranchFromEarlierLosesNothing(t *testing.T) {
	onRuntimes(t, decides(), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[counter]) {
		invoke(t, th, counter{})
		invoke(t, th, nil)
		before := historyOf(t, th)
		_, err := th.Update(t.Context(), wrote("bad"), superstep.AsNode("a"), superstep.AtCheckpoint(atStep(t, th, 1).Checkpoint))
		require.ErrorIs(t, err, superstep.ErrBadInput)
		require.ErrorContains(t, err, "nowhere to go")
		assert.Equal(t, []string{"a", "b"}, logOf(t, th))
		assert.Equal(t, before, historyOf(t, th))
		invoke(t, th, wrote("again"))
		assert.Equal(t, []string{"a", "b", "again", "a", "b"}, invoke(t, th, nil).Output.Log.Get())
	})
}
