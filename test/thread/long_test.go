package thread_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// twoPhases runs a thread of the streaming graph to its question, then on to its failure, and then to its end.
func twoPhases(t *testing.T, th *superstep.Thread[rig.Story], phase func()) {
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
	s := rig.NewServerThatContinues(t, protocol.ContinueAt{Events: 1, Life: 1})
	served := rig.StreamingGraph("long")
	s.Work(served)
	type told struct {
		streams [][]string
		history [][]thread.CheckpointView
		states  [][]superstep.ThreadState[rig.Story]
	}
	var all []thread.Part
	runs := 0
	tell := func(rt superstep.Runtime, g *superstep.Graph[rig.Story]) (out told) {
		th := g.Thread(rt, s.Queue)
		from := ""
		all = nil
		twoPhases(t, th, func() {
			if rt == superstep.Runtime(s.Client) {
				runs += s.Continued(th.ID())
			}
			parts := rig.StreamOf(t, th, rig.EveryMode(superstep.StreamFrom(from))...)
			require.NotEmpty(t, parts)
			from = parts[len(parts)-1].Offset
			all = append(all, parts...)
			out.streams = append(out.streams, rig.SettledLines(parts))
			made, err := th.History(t.Context(), superstep.WithValues())
			require.NoError(t, err)
			out.history = append(out.history, made)
			var states []superstep.ThreadState[rig.Story]
			for _, c := range made {
				state, err := th.State(t.Context(), superstep.AtCheckpoint(c.Checkpoint), superstep.WithSubgraphs())
				require.NoError(t, err)
				states = append(states, state)
			}
			out.states = append(out.states, states)
		})
		return out
	}
	want := tell(superstep.NewMemory(), rig.StreamingGraph("long"))
	got := tell(s.Client, served)
	for i := range want.streams {
		assert.Equal(t, want.streams[i], got.streams[i], "the streams of phase %d", i)
		assert.Equal(t, asText(t, want.history[i]), asText(t, got.history[i]), "the history in phase %d", i)
		assert.Equal(t, asText(t, want.states[i]), asText(t, got.states[i]), "the states in phase %d", i)
	}
	th := served.Thread(s.Client, s.Queue)
	for i := 0; i < len(all); i += 11 { // each is a replay
		require.Equal(t, all[i+1:], append([]thread.Part{}, rig.StreamOf(t, th, rig.EveryMode(superstep.StreamFrom(all[i].Offset))...)...), "from part %d", i)
	}
	assert.Greater(t, runs, 4, "the thread was hardly ever continued")
	threads, err := s.List(t.Context(), thread.ListQuery{Limit: 10_000})
	require.NoError(t, err)
	listed := 0
	for _, v := range threads {
		if v.Thread == s.Queue {
			listed++
			assert.Equal(t, thread.StatusFinished, v.Status)
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
	s := rig.NewServerThatContinues(t, protocol.ContinueAt{Events: 1, Life: 1})
	var broken atomic.Bool
	g := rig.Fateful(&broken)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	first := ""
	want := []string{}
	for _, word := range []string{"one", "two", "three"} {
		result, err := th.Invoke(t.Context(), rig.Wrote(word), superstep.WithKeepOpen(0))
		require.NoError(t, err)
		want = append(want, word, "a", "b")
		assert.Equal(t, thread.StatusFinished, result.Status)
		assert.Equal(t, want, result.Output.Log.Get())
		described, err := s.Temporal.DescribeWorkflowExecution(t.Context(), s.Queue, "")
		require.NoError(t, err)
		info := described.GetWorkflowExecutionInfo()
		assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, info.GetStatus())
		if first == "" {
			first = info.GetFirstRunId()
		}
		assert.Equal(t, first, info.GetFirstRunId(), "the input began a run of its own")
	}
	assert.Positive(t, s.Continued(s.Queue))
	_, err := s.Resume(t.Context(), thread.ResumeRequest{Thread: s.Queue})
	assert.ErrorIs(t, err, thread.ErrAnswerRefused)
	view, err := s.Cancel(t.Context(), thread.CancelRequest{Thread: s.Queue, Reason: "enough"})
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, view.Status)
	history, err := th.History(t.Context())
	require.NoError(t, err)
	assert.Len(t, history, 3*4)

	idle := g.Thread(s.Client, s.Queue+"-idle")
	_, err = idle.Invoke(t.Context(), rig.Wrote("one"), superstep.WithKeepOpen(200*time.Millisecond))
	require.NoError(t, err)
	var left protocol.GraphResult
	require.NoError(t, s.Temporal.GetWorkflow(t.Context(), idle.ID(), "").Get(t.Context(), &left))
	assert.JSONEq(t, `["one","a","b"]`, string(left.Output["log"]))
}

// TestAThreadBeganWithItsFirstRun, whatever runs it is continued as.
func TestAThreadBeganWithItsFirstRun(t *testing.T) {
	t.Parallel()
	s := rig.NewServerThatContinues(t, protocol.ContinueAt{Events: 1, Life: 1})
	g := loop{steps: 6, asks: 3, moved: &atomic.Int64{}}.graph()
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	require.NoError(t, th.Start(t.Context(), map[string]any{"at": 0}))
	for range 3 {
		v, err := s.Wait(t.Context(), th.ID())
		require.NoError(t, err)
		require.Len(t, v.Questions, 1)
		_, err = s.Resume(t.Context(), thread.ResumeRequest{Thread: th.ID(), Value: json.RawMessage(`"on"`)})
		require.NoError(t, err)
	}
	v, err := s.Wait(t.Context(), th.ID())
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, v.Status)
	require.Positive(t, s.Continued(th.ID()))
	last, err := s.Temporal.DescribeWorkflowExecution(t.Context(), th.ID(), "")
	require.NoError(t, err)
	first, err := s.Temporal.DescribeWorkflowExecution(t.Context(), th.ID(), last.GetWorkflowExecutionInfo().GetFirstRunId())
	require.NoError(t, err)
	require.Equal(t, first.GetWorkflowExecutionInfo().GetStartTime().AsTime(), v.Started)
	require.NotEqual(t, last.GetWorkflowExecutionInfo().GetStartTime().AsTime(), v.Started)
	require.Eventually(t, func() bool { // the index is a moment behind, and lists what other tests have open first
		all, err := s.List(t.Context(), thread.ListQuery{Limit: 10_000})
		at := slices.IndexFunc(all, func(l thread.View) bool { return l.Thread == th.ID() })
		return err == nil && at >= 0 && all[at].Started.Equal(v.Started)
	}, 2*time.Minute, 50*time.Millisecond)
}

// TestUpdateOfARunThatItEnded: who repeats an update under its id, because the reply was lost, gets it once, also when it
// left the run nothing to do.
func TestUpdateOfARunThatItEnded(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	var broken atomic.Bool
	g := rig.Fateful(&broken)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	rig.Invoke(t, th, rig.Wrote("ask"))
	req := thread.UpdateRequest{Thread: th.ID(), Values: json.RawMessage(`{"log":["by hand"]}`), AsNode: "b", ID: "once"}
	first, err := s.Update(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, first.Status)
	again, err := s.Update(t.Context(), req)
	require.NoError(t, err)
	assert.False(t, first.Repeated)
	assert.True(t, again.Repeated)
	again.Repeated = false
	assert.Equal(t, first, again)
	got, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"ask", "a", "by hand"}, got.State.Log.Get())
}

// TestARepeatedUpdateIsToldApart: who sends another one under an id that was taken is told that nothing was written, by a run that is open
// and by a thread whose run is over.
func TestARepeatedUpdateIsToldApart(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	g := turns()
	s.Work(g)
	for name, input := range map[string]string{"open": "ask", "over": "hello"} {
		t.Run(name, func(t *testing.T) {
			th := g.Thread(s.Client, s.Queue+"-"+name)
			rig.Invoke(t, th, rig.Wrote(input))
			for i, values := range []string{`{"log":["one"]}`, `{"log":["other"]}`} {
				state, err := s.Update(t.Context(), thread.UpdateRequest{Thread: th.ID(), Values: json.RawMessage(values), AsNode: superstep.Start, ID: "u-1"})
				require.NoError(t, err)
				assert.Equal(t, i == 1, state.Repeated)
				assert.JSONEq(t, `["`+input+`","one"]`, string(state.Values["log"]))
			}
			state, err := s.Update(t.Context(), thread.UpdateRequest{Thread: th.ID(), Values: json.RawMessage(`{"log":["two"]}`), AsNode: superstep.Start, ID: "u-2"})
			require.NoError(t, err)
			assert.False(t, state.Repeated)
		})
	}
}

// TestRetryOfARunThatSaidNothing: a run that failed without leaving a state cannot be continued as if there were none.
func TestRetryOfARunThatSaidNothing(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	var broken atomic.Bool
	g := rig.Fateful(&broken)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	rig.Invoke(t, th, rig.Wrote("finish"))
	run, err := s.Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: th.ID(), TaskQueue: s.Queue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, Memo: map[string]any{protocol.MemoGraph: "fateful"}},
		protocol.GraphWorkflow, protocol.GraphInput{Graph: "fateful", State: []byte(`"of a later version"`)})
	require.NoError(t, err)
	require.Error(t, run.Get(t.Context(), nil))
	_, err = s.Retry(t.Context(), thread.RetryRequest{Thread: th.ID()})
	assert.Error(t, err)
	_, err = th.Invoke(t.Context(), rig.Wrote("more"))
	assert.Error(t, err)
	now, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, run.GetRunID(), now.RunID, "a thread whose state is not known began anew")
	assert.Equal(t, thread.StatusFailed, now.Status)
}

type told struct{ Who string }

// TestUpdateKeepsTheRunsSettings: branches that an update evaluates, and what runs on after it, have the context that the
// thread's run had, whether it was open or had ended.
func TestUpdateKeepsTheRunsSettings(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	var ran, routed atomic.Pointer[string]
	note := func(ctx context.Context, into *atomic.Pointer[string]) {
		who := "nobody"
		if c, err := superstep.RunContext[told](ctx); err == nil {
			who = c.Who
		}
		into.Store(&who)
	}
	g := superstep.NewStateGraph[rig.Counter]("settled")
	g.AddNode("a", rig.Appending("a"))
	g.AddNode("b", func(ctx context.Context, c rig.Counter) (rig.Counter, error) {
		note(ctx, &ran)
		return rig.Appending("b")(ctx, c)
	})
	g.AddEdge(superstep.Start, "a")
	g.AddConditionalEdges("a", func(ctx context.Context, _ rig.Counter) ([]superstep.Target, error) {
		note(ctx, &routed)
		return superstep.To("b"), nil
	}, "b")
	compiled := g.MustCompile()
	s.Work(compiled)
	th := compiled.Thread(s.Client, s.Queue)
	rig.Invoke(t, th, rig.Wrote("in"), superstep.WithContext(told{"ann"}))
	ran.Store(nil)
	routed.Store(nil)
	_, err := th.Update(t.Context(), rig.Wrote("by hand"), superstep.AsNode("a"))
	require.NoError(t, err)
	assert.Equal(t, "ann", *routed.Load())
	_, err = s.Resume(t.Context(), thread.ResumeRequest{Thread: th.ID()})
	require.NoError(t, err)
	_, err = th.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "ann", *ran.Load())
}
