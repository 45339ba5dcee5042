package graph_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// twoSizes is a state of which most nodes read little.
type twoSizes struct {
	Small superstep.Value[string] `json:"small"`
	Big   superstep.Value[string] `json:"big"`
	Log   superstep.List[string]  `json:"log"`
}

// oneSize is what a node declares that reads the small field alone.
type oneSize struct {
	Small superstep.Value[string] `json:"small"`
}

// TestANodeIsSentWhatItReads: the request of a node's activity has the fields that the node declared and no trace of any other one;
// where a branch behind it reads everything, it has everything, and the node is still given what it declared.
func TestANodeIsSentWhatItReads(t *testing.T) {
	big := strings.Repeat("0123456789", 100<<10/10)
	reads := func(_ context.Context, s oneSize) (superstep.Command[twoSizes], error) {
		var c superstep.Command[twoSizes]
		c.Update.Log.Append("small is " + s.Small.Get())
		return c, nil
	}
	b := superstep.NewStateGraph[twoSizes]("declared")
	superstep.AddInputNode(b, "little", reads)
	superstep.AddInputNode(b, "routed", reads)
	b.AddNode("everything", func(_ context.Context, s twoSizes) (twoSizes, error) {
		if s.Big.Get() == big {
			s.Log.Append("all of it")
		}
		return s, nil
	})
	b.AddNode("behind", func(_ context.Context, s twoSizes) (twoSizes, error) {
		s.Log.Append("behind")
		return s, nil
	})
	for _, node := range []string{"little", "routed", "everything"} { // beside each other, so each is an activity
		b.AddEdge(superstep.Start, node)
	}
	b.AddConditionalEdges("routed", func(_ context.Context, s twoSizes) ([]superstep.Target, error) {
		if s.Big.Get() != big {
			return nil, assert.AnError
		}
		return superstep.To("behind"), nil
	}, "behind")
	g := b.MustCompile()
	s := rig.NewServer(t)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	var in twoSizes
	in.Small.Set("this")
	in.Big.Set(big)
	got, err := th.Invoke(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	assert.Equal(t, []string{"all of it", "small is this", "small is this", "behind"}, got.Output.Log.Get())

	text := pregel.Value(`"` + big + `"`)
	reference := graphadapter.Reference{Part: graphadapter.PartChannel, Channel: "big", Digest: graphadapter.DigestOf(text), Size: len(text)}
	requests := nodeRequests(t, s, th.ID())
	require.Len(t, requests, 3)
	r := requests["declared.little"]
	assert.Equal(t, map[string]string{"small": `"this"`}, r.state)
	assert.Empty(t, r.References)
	assert.NotContains(t, r.text, `"big"`)
	assert.NotContains(t, r.text, big[:100])
	for _, node := range []string{"routed", "everything"} {
		r := requests["declared."+node]
		assert.Equal(t, map[string]string{"small": `"this"`, "log": "[]"}, r.state, node)
		assert.Equal(t, []graphadapter.Reference{reference}, r.References, node)
		assert.NotContains(t, r.text, big[:100], node)
	}
}

// nodeRequest is what the server was given for a node's activity, and what of the state is in it.
type nodeRequest struct {
	graphadapter.NodeRequest
	state map[string]string
	text  string
}

// nodeRequests are those of a thread's newest run, by the types of their activities, of which each has one.
func nodeRequests(t *testing.T, s *rig.Server, threadID string) map[string]nodeRequest {
	t.Helper()
	all := map[string]nodeRequest{}
	events := s.Temporal.GetWorkflowHistory(t.Context(), threadID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		scheduled := e.GetActivityTaskScheduledEventAttributes()
		if scheduled == nil || !strings.HasPrefix(scheduled.GetActivityType().GetName(), "declared.") {
			continue
		}
		kind := scheduled.GetActivityType().GetName()
		require.NotContains(t, all, kind)
		r := nodeRequest{state: map[string]string{}, text: string(scheduled.GetInput().GetPayloads()[0].GetData())}
		require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(scheduled.GetInput(), &r.NodeRequest))
		for name, v := range r.Task.State {
			r.state[name] = v.String()
		}
		all[kind] = r
	}
	return all
}
