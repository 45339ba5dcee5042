package thread_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestCheckpointsAreDated: every checkpoint of a thread's runs, and its state, say when they were made, in every mode, while
// the run is open, behind its end and behind the next run's begin.
func TestCheckpointsAreDated(t *testing.T) {
	t.Parallel()
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			b := superstep.NewStateGraph[rig.Counter]("dated")
			b.AddNode("a", rig.Appending("a"))
			b.AddNode("b", rig.Appending("b"))
			b.AddEdge(superstep.Start, "a")
			b.AddEdge("a", "b")
			rig.OnRuntimes(t, b.MustCompile(append(slices.Clip(opts), superstep.WithInterruptBefore("b"))...),
				func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
					began := time.Now().Add(-time.Minute) // the server's clock is another one
					dated := func() {
						t.Helper()
						history, err := th.History(t.Context())
						require.NoError(t, err)
						require.NotEmpty(t, history)
						for i, c := range history {
							assert.WithinRange(t, c.CreatedAt, began, time.Now().Add(time.Minute))
							if i > 0 {
								assert.False(t, c.CreatedAt.After(history[i-1].CreatedAt), "the newest comes first")
							}
						}
						now, err := th.State(t.Context())
						require.NoError(t, err)
						assert.WithinDuration(t, history[0].CreatedAt, now.CreatedAt, time.Millisecond)
						oldest := history[len(history)-1]
						then, err := th.State(t.Context(), superstep.AtCheckpoint(oldest.Checkpoint))
						require.NoError(t, err)
						assert.WithinDuration(t, oldest.CreatedAt, then.CreatedAt, time.Millisecond)
					}
					rig.Invoke(t, th, rig.Counter{})
					dated()
					rig.Invoke(t, th, nil)
					dated()
					rig.Invoke(t, th, rig.Counter{})
					dated()
				})
		})
	}
}

// TestThreadStateAsJSON has the values once, as the state's fields.
func TestThreadStateAsJSON(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("as_json")
	b.AddNode("a", rig.Appending("a"))
	b.AddEdge(superstep.Start, "a")
	th := b.MustCompile().Thread(superstep.NewMemory(), "t")
	rig.Invoke(t, th, rig.Counter{})
	state, err := th.State(t.Context())
	require.NoError(t, err)
	text, err := json.Marshal(state)
	require.NoError(t, err)
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &fields))
	assert.NotContains(t, fields, "State")
	assert.JSONEq(t, `{"log":["a"]}`, string(fields["values"]))
	var again superstep.ThreadState[rig.Counter]
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, state.Checkpoint, again.Checkpoint)
	assert.Equal(t, []string{"a"}, again.State.Log.Get())
	require.ErrorAs(t, json.Unmarshal([]byte(`{"graph":"as_json","values":{"log":7}}`), &again), new(*superstep.StateError))
	assert.Equal(t, []string{"a"}, again.State.Log.Get(), "what cannot be read changes nothing")
}

// TestThreadIDs: what cannot be an id is refused before anything is started, by both runtimes, with what is allowed.
func TestThreadIDs(t *testing.T) {
	t.Parallel()
	bad := []string{"", " ", "\t", ".", "..", " r-7", "r-7 ", "日本", "r\n7", "r\x00", "\xff", "a\u202eb", strings.Repeat("x", 201)}
	for _, id := range bad {
		require.ErrorIs(t, thread.CheckID(id), thread.ErrBadInput, "%q", id)
	}
	for _, id := range []string{"r", "r-7", "report/3", "it's me", "order:7", "...", strings.Repeat("x", 200)} {
		require.NoError(t, thread.CheckID(id), "%q", id)
	}
	require.ErrorContains(t, thread.CheckID("日本"), "letters, digits and the punctuation of ASCII are allowed")
	type state struct {
		Said superstep.Value[string] `json:"said"`
	}
	g := superstep.NewStateGraph[state]("ids")
	g.AddNode("say", func(_ context.Context, s state) (state, error) {
		s.Said.Set("it")
		return s, nil
	})
	g.AddEdge(superstep.Start, "say")
	graph := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for _, id := range bad {
			require.ErrorIs(t, graph.Thread(rt, id).Start(t.Context(), state{}), thread.ErrBadInput, "%q", id)
		}
	}, graph)
}

// TestNewThreads: an id that was made is guessed by nobody, and a thread that is to be new goes on with no other.
func TestNewThreads(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := thread.NewID("refund")
		require.Regexp(t, `^refund-[a-z2-7]{26}$`, id) // 130 bits
		require.False(t, seen[id])
		seen[id] = true
	}
	require.Regexp(t, `^thread-[a-z2-7]{26}$`, thread.NewID(strings.Repeat("ä", 10)))
}

// starts is an interceptor that counts the runs which a Temporal client starts.
type starts struct {
	interceptor.ClientInterceptorBase
	interceptor.ClientOutboundInterceptorBase
	seen atomic.Int64
}

func (s *starts) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	s.ClientOutboundInterceptorBase.Next = next
	return s
}

func (s *starts) ExecuteWorkflow(ctx context.Context, in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	if in.Options.ID == "started-"+in.Options.TaskQueue {
		s.seen.Add(1)
	}
	return s.Next.ExecuteWorkflow(ctx, in)
}

// TestANewThreadIsStartedByTheTemporalClient: its interceptors see the start, and the worker on the same client has the run
// without the way through the server's queue. A client that names itself says so in the history, and goes that way.
func TestANewThreadIsStartedByTheTemporalClient(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("starting")
	b.AddNode("a", rig.Appending("a"))
	b.AddEdge(superstep.Start, "a")
	g := b.MustCompile()
	for identity, eager := range map[string]bool{"": true, "somebody": false} {
		t.Run(identity, func(t *testing.T) {
			t.Parallel()
			seen := &starts{}
			c, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: rig.NoLog{}, Interceptors: []interceptor.ClientInterceptor{seen}})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			s := &rig.Server{T: t, Temporal: c, Queue: testserver.Queue(t)}
			s.Client, err = superstep.NewClient(c, superstep.ClientConfig{TaskQueue: s.Queue, Identity: identity})
			require.NoError(t, err)
			s.Work(g)
			threadID := "started-" + s.Queue
			started, err := s.Start(t.Context(), thread.StartRequest{Graph: "starting", Thread: threadID, Input: []byte(`{}`)})
			require.NoError(t, err)
			_, err = s.Wait(t.Context(), threadID)
			require.NoError(t, err)
			first := firstEvent(s, threadID, started.RunID)
			assert.Equal(t, eager, first.GetEagerExecutionAccepted())
			if identity != "" {
				assert.Equal(t, identity, first.GetIdentity())
			}
			assert.Equal(t, eager, seen.seen.Load() == 1)
			view, err := s.Show(t.Context(), threadID)
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFinished, view.Status)

			// Whoever wants a new thread goes on with no other.
			_, err = s.Start(t.Context(), thread.StartRequest{Graph: "starting", Thread: threadID, NewThread: true, Input: []byte(`{}`)})
			require.ErrorIs(t, err, thread.ErrBadInput)
			require.ErrorContains(t, err, "already")
			made, err := s.Start(t.Context(), thread.StartRequest{Graph: "starting", Input: []byte(`{}`)})
			require.NoError(t, err)
			require.Regexp(t, `^starting-[a-z2-7]{26}$`, made.Thread)

			// The thread's next run needs a request id of its own, so the Temporal client does not start it.
			_, err = s.Start(t.Context(), thread.StartRequest{Graph: "starting", Thread: threadID, Input: []byte(`{}`)})
			require.NoError(t, err)
			assert.False(t, firstEvent(s, threadID, "").GetEagerExecutionAccepted())
		})
	}
}

// firstEvent is how a run was started.
func firstEvent(s *rig.Server, thread, runID string) *historypb.WorkflowExecutionStartedEventAttributes {
	s.T.Helper()
	events := s.Temporal.GetWorkflowHistory(s.T.Context(), thread, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := events.Next()
	require.NoError(s.T, err)
	return first.GetWorkflowExecutionStartedEventAttributes()
}
