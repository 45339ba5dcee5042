package runtime

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/thread"
)

// TestWhatIsTooLongIsNamed: who asks, why, or under which id, how long it is, and how long it may be.
func TestWhatIsTooLongIsNamed(t *testing.T) {
	name, reason := strings.Repeat("n", maxName+1), strings.Repeat("r", maxReason+1)
	for says, err := range map[string]error{
		"the name of who asks has 201 bytes, at most 200 are kept":  CheckPause(thread.PauseRequest{By: name}),
		"the reason has 1001 bytes, at most 1000 are kept":          CheckCancel(thread.CancelRequest{Reason: reason}),
		"the id of the request has 201 bytes, at most 200 are kept": CheckEvent(thread.EventRequest{Name: "go", ID: name}),
	} {
		require.ErrorIs(t, err, thread.ErrBadInput)
		require.ErrorContains(t, err, says)
	}
	start := CheckStart(Start{StartRequest: thread.StartRequest{Thread: "t-1", By: name}})
	require.ErrorContains(t, start, "the name of who asks has 201 bytes")
	require.ErrorContains(t, CheckAnswers(thread.ResumeRequest{ID: name}), "the id of the request has 201 bytes")
	require.NoError(t, CheckAsker("t-1", name[:maxName], reason[:maxReason]))
	require.NoError(t, CheckPause(thread.PauseRequest{By: name[:maxName], ID: name[:maxName], Reason: reason[:maxReason]}))
}
