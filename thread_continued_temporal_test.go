package superstep_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/workflows/protocol"
)

// TestUpdateOfARunThatItEnded: who repeats an update under its id, because the reply was lost, gets it once, also when it
// left the run nothing to do.
func TestUpdateOfARunThatItEnded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var broken atomic.Bool
	g := fateful(&broken)
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	invoke(t, th, wrote("ask"))
	req := superstep.UpdateRequest{Thread: th.ID(), Values: json.RawMessage(`{"log":["by hand"]}`), AsNode: "b", ID: "once"}
	first, err := s.Update(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, superstep.StatusFinished, first.Status)
	again, err := s.Update(t.Context(), req)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	got, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"ask", "a", "by hand"}, got.State.Log.Get())
}

// TestRetryOfARunThatSaidNothing: a run that failed without leaving a state cannot be continued as if there were none.
func TestRetryOfARunThatSaidNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var broken atomic.Bool
	g := fateful(&broken)
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	invoke(t, th, wrote("finish"))
	run, err := s.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: th.ID(), TaskQueue: s.queue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, Memo: map[string]any{protocol.MemoGraph: "fateful"}},
		protocol.GraphWorkflow, protocol.GraphInput{Graph: "fateful", State: []byte(`"of a later version"`)})
	require.NoError(t, err)
	require.Error(t, run.Get(t.Context(), nil))
	_, err = s.Retry(t.Context(), th.ID())
	assert.Error(t, err)
	_, err = th.Invoke(t.Context(), wrote("more"))
	assert.Error(t, err)
	now, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, run.GetRunID(), now.RunID, "a thread whose state is not known began anew")
	assert.Equal(t, superstep.StatusFailed, now.Status)
}

type told struct{ Who string }

// TestUpdateKeepsTheRunsSettings: branches that an update evaluates, and what runs on after it, have the context that the
// thread's run had, whether it was open or had ended.
func TestUpdateKeepsTheRunsSettings(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var ran, routed atomic.Pointer[string]
	note := func(ctx context.Context, into *atomic.Pointer[string]) {
		who := "nobody"
		if c, err := superstep.RunContext[told](ctx); err == nil {
			who = c.Who
		}
		into.Store(&who)
	}
	g := superstep.NewStateGraph[counter]("settled")
	g.AddNode("a", appending("a"))
	g.AddNode("b", func(ctx context.Context, c counter) (counter, error) {
		note(ctx, &ran)
		return appending("b")(ctx, c)
	})
	g.AddEdge(superstep.Start, "a")
	g.AddConditionalEdges("a", func(ctx context.Context, _ counter) ([]superstep.Target, error) {
		note(ctx, &routed)
		return superstep.To("b"), nil
	}, "b")
	compiled := g.MustCompile()
	s.work(compiled)
	th := compiled.Thread(s.Client, s.queue)
	invoke(t, th, wrote("in"), superstep.WithContext(told{"ann"}))
	ran.Store(nil)
	routed.Store(nil)
	_, err := th.Update(t.Context(), wrote("by hand"), superstep.AsNode("a"))
	require.NoError(t, err)
	assert.Equal(t, "ann", *routed.Load())
	_, err = s.Resume(t.Context(), superstep.ResumeRequest{Thread: th.ID()})
	require.NoError(t, err)
	_, err = th.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "ann", *ran.Load())
}

// TestContinueBehindSeveralRuns: a client that took its time continues a thread only when nobody else has since.
func TestContinueBehindSeveralRuns(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var broken atomic.Bool
	g := fateful(&broken)
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	var runs []string
	for range 3 {
		invoke(t, th, wrote("finish"))
		now, err := s.Show(t.Context(), th.ID())
		require.NoError(t, err)
		runs = append(runs, now.RunID)
	}
	for _, behind := range runs[:2] {
		assert.ErrorIs(t, superstep.LaunchBehind(t, s.Client, th.ID(), behind), superstep.ErrRunning)
	}
	now, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, runs[2], now.RunID)
}
