package thread_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/proxy"
	sdkpb "go.temporal.io/api/sdk/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"superstep.dev"
	"superstep.dev/internal/delta"
	"superstep.dev/test/rig"
)

// TestEverySomeTurnsAStateIsWhole: of a conversation with a run for each turn, whose every run begins and ends with a stored state, one in 128
// states is stored whole, which is after 64 turns; all others are told by an earlier one.
func TestEverySomeTurnsAStateIsWhole(t *testing.T) {
	t.Parallel()
	const turns = 200
	s := newShared(t, rig.NewServer(t)).process(t)
	g := talking("whole")
	s.process(t).work(g)
	th := g.Thread(s.Client, s.Queue)
	// So long from the beginning that no state is whole because what is new in it is much of it.
	_, err := th.Invoke(t.Context(), rig.Wrote(said(200<<10, turns)), superstep.WithKeepOpen(-1))
	require.NoError(t, err)
	var whole, states []int // the turns of whole states, and their places among all states
	count := 0
	for turn := range turns {
		if turn > 0 {
			apart(t, th, turn)
		}
		stored := storedIn(t, s.Server, th.ID())
		require.GreaterOrEqual(t, len(stored), 2, "turn %d", turn)
		assert.Equal(t, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, stored[0].event, "turn %d", turn)
		assert.Equal(t, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, stored[len(stored)-1].event, "turn %d", turn)
		for _, one := range stored {
			if one.form != "delta" {
				require.Equal(t, "pieces", one.form)
				whole, states = append(whole, turn), append(states, count)
			}
			count++
		}
	}
	t.Logf("of %d states in %d turns, those of the turns %v are whole", count, turns, whole)
	require.Zero(t, states[0])
	for i := range whole[1:] {
		assert.Equal(t, delta.Last+1, states[i+1]-states[i], "states from one that is whole to the next")
		distance := whole[i+1] - whole[i]
		assert.True(t, 50 <= distance && distance <= 100, "it is %d turns to turn %d", distance, whole[i+1])
	}
	assert.Less(t, count-states[len(states)-1], delta.Last+1, "the next is not due")
	saidBehind(t, rig.LogOf(t, g.Thread(s.process(t).Client, th.ID())), turns)
}

// saidBehind holds that a conversation of turns, of which the first was longer, is all there.
func saidBehind(t *testing.T, log []string, turns int) {
	t.Helper()
	require.Len(t, log, turns)
	for turn, text := range log[1:] {
		require.Equal(t, said(1<<10, uint64(turn+1)), text)
	}
}

// storedValue is a value of a history that lies in a storage.
type storedValue struct {
	event enumspb.EventType
	form  string // how it is stored
}

// storedIn are those of a thread's newest run, in the order of its history.
func storedIn(t *testing.T, s *rig.Server, threadID string) (all []storedValue) {
	t.Helper()
	events := s.Temporal.GetWorkflowHistory(t.Context(), threadID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		require.NoError(t, proxy.VisitPayloads(t.Context(), e, proxy.VisitPayloadsOptions{SkipSearchAttributes: true,
			Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
				for _, p := range payloads {
					if len(p.GetExternalPayloads()) == 0 {
						continue
					}
					var ref sdkpb.ExternalStorageReference
					require.NoError(t, protojson.Unmarshal(p.GetData(), &ref))
					all = append(all, storedValue{e.GetEventType(), ref.GetClaimData()["form"]})
				}
				return payloads, nil
			}}))
	}
	return all
}
