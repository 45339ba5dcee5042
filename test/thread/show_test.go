package thread_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

// TestShowWithoutAWorker: what a run waits for, and what it did outside, is in its history.
func TestShowWithoutAWorker(t *testing.T) {
	t.Parallel()
	r, s := rig.NewUndoable(false), rig.NewServer(t)
	stop := s.Work(r.Graph)
	th := r.Waits(t, s.Client)
	require.NoError(t, ignoreReply(s.Pause(t.Context(), thread.PauseRequest{Thread: th.ID(), By: "ann", Reason: "lunch"})))
	asked, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	require.Len(t, asked.Questions, 1)
	require.Len(t, asked.Effects, 1)
	stop()
	told, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Contains(t, told.Problem, "no worker")
	told.Problem = ""
	assert.Equal(t, asked.Questions, told.Questions)
	assert.Equal(t, asked.Effects, told.Effects)
	assert.Equal(t, []any{asked.Status, asked.Step, asked.Nodes, asked.Durability, asked.Output},
		[]any{told.Status, told.Step, told.Nodes, told.Durability, told.Output})
	assert.Equal(t, "lunch", told.Paused.Reason)
}

// TestShowOfWhatCannotBeRead: of a run whose graph has a reducer of its own, which neither this process nor a worker has, the server's index
// says how it stands.
func TestShowOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	type words struct {
		Word superstep.Reduced[string, ownReducer] `json:"word"`
	}
	s := rig.NewServer(t)
	b := superstep.NewStateGraph[words]("words")
	b.AddNode("ask", func(ctx context.Context, s words) (words, error) {
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		return s, err
	})
	b.AddEdge(superstep.Start, "ask")
	g := b.MustCompile()
	stop := s.Work(g)
	got, err := g.Thread(s.Client, s.Queue).Invoke(t.Context(), words{})
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, got.Status)
	stop()
	for name, work := range map[string]func() (stop func()){
		"no worker":      func() func() { return func() {} },
		"another worker": func() func() { return s.Work(rig.Chain("other", "a").MustCompile()) },
	} {
		stop := work()
		view, err := s.Show(t.Context(), s.Queue)
		require.NoError(t, err, name)
		assert.Equal(t, thread.StatusWaiting, view.Status, name)
		assert.Equal(t, []string{"ask"}, view.Nodes, name)
		assert.NotEmpty(t, view.Problem, name)
		stop()
	}
}

type ownReducer struct{}

func (ownReducer) Name() string { return "own/v1" }

func (ownReducer) Reduce(_, update string) (string, error) { return update, nil }

func ignoreReply[T any](_ T, err error) error { return err }

// TestTemporalsOwnScreens: the server's UI and CLI, which know no graphs, say which graph a run is of, where the run
// stands and what the run asks. The second run of a thread is started in another way than the first.
func TestTemporalsOwnScreens(t *testing.T) {
	t.Parallel()
	r, s := rig.NewUndoable(false), rig.NewServer(t)
	s.Work(r.Graph)
	th := r.Waits(t, s.Client)
	ownScreensSay(t, s, th.ID(), "**waiting**", "` go on? `", "~~~text\nSTART → first → second → third\n~~~")
	_, err := s.Cancel(t.Context(), thread.CancelRequest{Thread: th.ID(), Mode: thread.CancelKeep})
	require.NoError(t, err)
	_, err = th.Wait(t.Context())
	require.Error(t, err)
	_, err = th.Retry(t.Context())
	require.NoError(t, err)
	ownScreensSay(t, s, th.ID(), "**waiting**", "` go on? `")
}

func ownScreensSay(t *testing.T, s *rig.Server, thread string, details ...string) {
	t.Helper()
	described, err := s.Temporal.DescribeWorkflow(t.Context(), thread, "")
	require.NoError(t, err)
	summary, err := described.GetStaticSummary()
	require.NoError(t, err)
	assert.Equal(t, "graph undoable", summary)
	value, err := s.Temporal.QueryWorkflow(t.Context(), thread, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&metadata))
	for _, want := range details {
		assert.Contains(t, metadata.GetCurrentDetails(), want)
	}
}

// TestAHintNamesTheRunsQueue: a client of another task queue shows a run whose workers are gone.
func TestAHintNamesTheRunsQueue(t *testing.T) {
	t.Parallel()
	r, s := rig.NewUndoable(false), rig.NewServer(t)
	stop := s.Work(r.Graph)
	th := r.Waits(t, s.Client)
	stop()
	elsewhere, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: s.Queue + "-elsewhere"})
	require.NoError(t, err)
	shown, err := elsewhere.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Contains(t, shown.Problem, `on task queue "`+s.Queue+`"`)
}

// TestEachEndHasItsOwnStatus, in the error, for those who look, and in lists, which read search attributes.
func TestEachEndHasItsOwnStatus(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("ends")
	b.AddNode("choose", func(_ context.Context, s rig.Counter) (rig.Counter, error) { return s, nil })
	b.AddNode("fails", func(context.Context, rig.Counter) (rig.Counter, error) { return rig.Counter{}, errors.New("no") })
	b.AddNode("hangs", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		<-ctx.Done()
		return s, ctx.Err()
	})
	b.AddNode("limps", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		<-ctx.Done()
		return s, ctx.Err()
	}, superstep.WithTimeout(100*time.Millisecond, 0))
	b.AddNode("ends", rig.Appending("done"))
	b.AddEdge(superstep.Start, "choose")
	b.AddConditionalEdges("choose", func(_ context.Context, s rig.Counter) ([]superstep.Target, error) {
		return superstep.To(s.Log.Get()[0]), nil
	}, "fails", "hangs", "limps", "ends")
	g := b.MustCompile()
	for _, end := range []struct {
		node string
		opts []superstep.RunOption
		want thread.Status
	}{
		{"fails", nil, thread.StatusFailed},
		{"limps", nil, thread.StatusTimedOut},
		{"hangs", []superstep.RunOption{superstep.WithStepTimeout(200 * time.Millisecond)}, thread.StatusTimedOut},
		{"ends", []superstep.RunOption{superstep.WithRecursionLimit(1)}, thread.StatusOutOfBudget},
		{"ends", nil, thread.StatusFinished},
	} {
		t.Run(end.node+" "+string(end.want), func(t *testing.T) {
			rig.OnRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
				_, err := th.Invoke(t.Context(), rig.Wrote(end.node), end.opts...)
				if end.want != thread.StatusFinished {
					var run *superstep.RunError
					require.ErrorAs(t, err, &run)
					assert.Equal(t, end.want, run.Status)
					assert.True(t, run.Status.Failed())
				}
				state, err := th.State(t.Context())
				require.NoError(t, err)
				assert.Equal(t, end.want, state.Status)
				if c, ok := rt.(*superstep.Client); ok {
					assert.Equal(t, end.want, rig.AwaitListed(t, c, th.ID(), end.want).Status)
				}
			})
		})
	}
}

// TestAPauseIsListed with who and why.
func TestAPauseIsListed(t *testing.T) {
	t.Parallel()
	b, started, release := heldChain("paused-listed")
	g := b.MustCompile()
	rig.OnRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		c, ok := rt.(*superstep.Client)
		if !ok {
			t.Skip("only a server lists")
		}
		require.NoError(t, th.Start(t.Context(), rig.Counter{}))
		<-started
		reply, err := c.Pause(t.Context(), thread.PauseRequest{Thread: th.ID(), By: "ann", Reason: "audit"})
		require.NoError(t, err)
		assert.True(t, reply.Changed)
		release <- struct{}{}
		v := rig.AwaitListed(t, c, th.ID(), thread.StatusPaused)
		assert.Equal(t, "ann", v.Paused.By)
		assert.Equal(t, "audit", v.Paused.Reason)
		_, err = c.Unpause(t.Context(), thread.PauseRequest{Thread: th.ID()})
		require.NoError(t, err)
		assert.Nil(t, rig.AwaitListed(t, c, th.ID(), thread.StatusFinished).Paused)
	})
}
