package superstep_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/workflows/protocol"
)

// continuing makes the runs of a server's client be continued as new ones whenever they can be.
func (s *server) continuing() *server {
	superstep.ContinueAt(s.Client, protocol.ContinueAt{Events: 1, Life: 1})
	return s
}

// continued counts the runs of a thread that were continued as new ones.
func (s *server) continued(thread string) int {
	s.t.Helper()
	n := 0
	described, err := s.temporal.DescribeWorkflowExecution(s.t.Context(), thread, "")
	require.NoError(s.t, err)
	for id := described.GetWorkflowExecutionInfo().GetFirstRunId(); id != ""; n++ {
		events := s.temporal.GetWorkflowHistory(s.t.Context(), thread, id, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		if !events.HasNext() {
			break
		}
		e, err := events.Next()
		require.NoError(s.t, err)
		if id = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); id == "" {
			break
		}
	}
	return n
}

// twoPhases runs a thread of the streaming graph to its question, then on to its failure, and then to its end.
func twoPhases(t *testing.T, th *superstep.Thread[story], phase func()) {
	t.Helper()
	require.NoError(t, th.Start(t.Context(), map[string]any{"messages": []map[string]string{{"id": "u", "role": "user", "content": "hi"}}}))
	_, err := th.Wait(t.Context())
	require.NoError(t, err)
	phase()
	_, err = th.Resume(t.Context(), true)
	require.Error(t, err)
	phase()
	require.NoError(t, th.Start(t.Context(), nil))
	_, err = th.Wait(t.Context())
	require.NoError(t, err)
	phase()
}

// TestALongThreadIsOneThread: what a thread streams whose runs are continued as new ones all the time, what it stores, and
// what it says of itself is the same as in memory: nothing twice and nothing less, and from every offset exactly the rest.
func TestALongThreadIsOneThread(t *testing.T) {
	t.Parallel()
	s := newServer(t).continuing()
	served := streamingGraph("long")
	s.work(served)
	type told struct {
		streams [][]string
		history [][]superstep.CheckpointView
		states  [][]superstep.ThreadState[story]
	}
	var all []superstep.StreamPart
	runs := 0
	tell := func(rt superstep.Runtime, g *superstep.Graph[story]) (out told) {
		th := g.Thread(rt, s.queue)
		from := ""
		all = nil
		twoPhases(t, th, func() {
			if rt == superstep.Runtime(s.Client) {
				runs += s.continued(th.ID())
			}
			parts := streamed(t, th, everyMode(superstep.StreamFrom(from))...)
			require.NotEmpty(t, parts)
			from = parts[len(parts)-1].Offset
			all = append(all, parts...)
			out.streams = append(out.streams, settled(parts))
			made, err := th.History(t.Context(), superstep.WithValues())
			require.NoError(t, err)
			out.history = append(out.history, made)
			var states []superstep.ThreadState[story]
			for _, c := range made {
				state, err := th.StateAt(t.Context(), c.Checkpoint, superstep.WithSubgraphs())
				require.NoError(t, err)
				states = append(states, state)
			}
			out.states = append(out.states, states)
		})
		return out
	}
	want := tell(superstep.NewMemory(), streamingGraph("long"))
	got := tell(s.Client, served)
	for i := range want.streams {
		assert.Equal(t, want.streams[i], got.streams[i], "the streams of phase %d", i)
		assert.Equal(t, asText(t, want.history[i]), asText(t, got.history[i]), "the history in phase %d", i)
		assert.Equal(t, asText(t, want.states[i]), asText(t, got.states[i]), "the states in phase %d", i)
	}
	th := served.Thread(s.Client, s.queue)
	for i := 0; i < len(all); i += 11 { // each is a replay
		require.Equal(t, all[i+1:], append([]superstep.StreamPart{}, streamed(t, th, everyMode(superstep.StreamFrom(all[i].Offset))...)...), "from part %d", i)
	}
	assert.Greater(t, runs, 4, "the thread was hardly ever continued")
	threads, err := s.List(t.Context(), superstep.ListQuery{})
	require.NoError(t, err)
	listed := 0
	for _, v := range threads {
		if v.Thread == s.queue {
			listed++
			assert.Equal(t, superstep.StatusFinished, v.Status)
		}
	}
	assert.LessOrEqual(t, listed, 1)
}

// asText is a view as text, without when its checkpoints were made.
func asText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return createdAt.ReplaceAllString(string(text), `"created_at": "then"`)
}

var createdAt = regexp.MustCompile(`"created_at": "[^"]+"`)

// TestAThreadThatIsKeptOpen takes input after input in one execution, is continued as a new one while it rests, and is
// finished when somebody cancels it, or when nobody has given it anything for a while.
func TestAThreadThatIsKeptOpen(t *testing.T) {
	t.Parallel()
	s := newServer(t).continuing()
	var broken atomic.Bool
	g := fateful(&broken)
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	first := ""
	want := []string{}
	for _, word := range []string{"one", "two", "three"} {
		result, err := th.Invoke(t.Context(), wrote(word), superstep.WithKeepOpen(0))
		require.NoError(t, err)
		want = append(want, word, "a", "b")
		assert.Equal(t, superstep.StatusFinished, result.Status)
		assert.Equal(t, want, result.Output.Log.Get())
		described, err := s.temporal.DescribeWorkflowExecution(t.Context(), s.queue, "")
		require.NoError(t, err)
		info := described.GetWorkflowExecutionInfo()
		assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, info.GetStatus())
		if first == "" {
			first = info.GetFirstRunId()
		}
		assert.Equal(t, first, info.GetFirstRunId(), "the input began a run of its own")
	}
	assert.Positive(t, s.continued(s.queue))
	_, err := s.Resume(t.Context(), superstep.ResumeRequest{Thread: s.queue})
	assert.ErrorIs(t, err, superstep.ErrAnswerRefused)
	view, err := s.Cancel(t.Context(), s.queue, "enough")
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusFinished, view.Status)
	history, err := th.History(t.Context())
	require.NoError(t, err)
	assert.Len(t, history, 3*4)

	idle := g.Thread(s.Client, s.queue+"-idle")
	_, err = idle.Invoke(t.Context(), wrote("one"), superstep.WithKeepOpen(200*time.Millisecond))
	require.NoError(t, err)
	var left protocol.GraphResult
	require.NoError(t, s.temporal.GetWorkflow(t.Context(), idle.ID(), "").Get(t.Context(), &left))
	assert.JSONEq(t, `["one","a","b"]`, string(left.Output["log"]))
}

// TestAThreadBeganWithItsFirstRun, whatever runs it is continued as.
func TestAThreadBeganWithItsFirstRun(t *testing.T) {
	t.Parallel()
	s := newServer(t).continuing()
	g := loop{steps: 6, asks: 3}.graph()
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	require.NoError(t, th.Start(t.Context(), map[string]any{"at": 0}))
	for range 3 {
		v, err := s.Wait(t.Context(), th.ID())
		require.NoError(t, err)
		require.Len(t, v.Questions, 1)
		_, err = s.Resume(t.Context(), superstep.ResumeRequest{Thread: th.ID(), Value: json.RawMessage(`"on"`)})
		require.NoError(t, err)
	}
	v, err := s.Wait(t.Context(), th.ID())
	require.NoError(t, err)
	require.Equal(t, superstep.StatusFinished, v.Status)
	require.Positive(t, s.continued(th.ID()))
	last, err := s.temporal.DescribeWorkflowExecution(t.Context(), th.ID(), "")
	require.NoError(t, err)
	first, err := s.temporal.DescribeWorkflowExecution(t.Context(), th.ID(), last.GetWorkflowExecutionInfo().GetFirstRunId())
	require.NoError(t, err)
	require.Equal(t, first.GetWorkflowExecutionInfo().GetStartTime().AsTime(), v.Started)
	require.NotEqual(t, last.GetWorkflowExecutionInfo().GetStartTime().AsTime(), v.Started)
	require.Eventually(t, func() bool { // the index is a moment behind
		all, err := s.List(t.Context(), superstep.ListQuery{})
		at := slices.IndexFunc(all, func(l superstep.ThreadView) bool { return l.Thread == th.ID() })
		return err == nil && at >= 0 && all[at].Started.Equal(v.Started)
	}, time.Minute, 50*time.Millisecond)
}
