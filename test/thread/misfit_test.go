package thread_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestUpdatesThatDoNotFitAreRefused, with the field's name and before anything is stored: of a thread that does not exist,
// stands still, waits inside a subgraph or has finished, and on a branch from an earlier checkpoint.
func TestUpdatesThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	sub := superstep.NewStateGraph[rig.Counter]("inside")
	sub.AddNode("x", rig.Appending("x"))
	sub.AddNode("y", rig.Asking("y"))
	sub.AddEdge(superstep.Start, "x")
	sub.AddEdge("x", "y")
	g := superstep.NewStateGraph[rig.Counter]("outside")
	g.AddNode("a", rig.Appending("a"))
	g.AddSubgraph("inner", sub.MustCompile())
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "inner")
	rig.OnRuntimes(t, g.MustCompile(superstep.WithInterruptBefore("inner")), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		bad := map[string]string{
			`{"n":"seven"}`:                       `field "n": expected int64, found a string`,
			`{"n":7.5}`:                           `field "n"`,
			`{"log":"no list"}`:                   `field "log"`,
			`{"log":[1],"n":null}`:                `field "n"`,
			`{"log":{"__overwrite__":"no list"}}`: `field "log"`,
		}
		refused := func(opts ...superstep.RequestOption) {
			t.Helper()
			for values, want := range bad {
				_, err := th.Update(t.Context(), json.RawMessage(values), opts...)
				require.ErrorIs(t, err, thread.ErrBadInput, values)
				assert.ErrorContains(t, err, want, values)
			}
		}
		same := func(opts ...superstep.RequestOption) {
			t.Helper()
			before := rig.HistoryOf(t, th)
			refused(opts...)
			assert.Equal(t, before, rig.HistoryOf(t, th), "nothing was stored")
		}
		refused(superstep.AsNode("a"))
		_, err := th.State(t.Context())
		require.ErrorIs(t, err, thread.ErrNotFound)

		rig.Invoke(t, th, rig.Counter{})
		same(superstep.AsNode("a"))
		rig.Invoke(t, th, nil)
		same(superstep.InSubgraph("inner"), superstep.AsNode("x"))
		assert.Equal(t, []string{"x"}, rig.LogOf(t, th, superstep.InSubgraph("inner"))[1:])

		_, err = th.Update(t.Context(), json.RawMessage(`{"n":7,"log":{"__overwrite__":["new"]}}`), superstep.AsNode("inner"))
		require.NoError(t, err)
		assert.Equal(t, []string{"new"}, rig.LogOf(t, th))
		same(superstep.AsNode("inner"))
		same(superstep.AsNode("a"), superstep.AtCheckpoint(rig.AtStep(t, th, 1).Checkpoint))
	})
}

// A worker whose fields come together in another way than the run's gives its tasks back, and says which field that is; so
// does one that writes a field which the run does not have. The run goes on with a worker of its own version.
func TestAWorkerOfOtherFieldsGivesItsTasksBack(t *testing.T) {
	t.Parallel()
	appends := superstep.NewStateGraph[rig.Payment]("fields")
	appends.AddNode("ask", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		s.Log.Append("asked")
		return s, err
	})
	appends.AddNode("after", func(_ context.Context, s rig.Payment) (rig.Payment, error) {
		s.Log.Append("after")
		return s, nil
	})
	appends.AddEdge(superstep.Start, "ask")
	appends.AddEdge("ask", "after")
	began := appends.MustCompile()

	type single struct {
		Log superstep.Value[[]string] `json:"log"`
	}
	replaces := superstep.NewStateGraph[single]("fields")
	for _, node := range []string{"ask", "after"} {
		replaces.AddNode(node, func(ctx context.Context, s single) (single, error) {
			if node == "ask" {
				if _, err := superstep.Interrupt[bool](ctx, "go on?"); err != nil {
					return s, err
				}
			}
			s.Log.Set(append(s.Log.Get(), node))
			return s, nil
		})
	}
	replaces.AddEdge(superstep.Start, "ask")
	replaces.AddEdge("ask", "after")

	type added struct {
		rig.Payment
		Extra superstep.Value[string] `json:"extra"`
	}
	writesMore := superstep.NewStateGraph[added]("fields")
	writesMore.AddNode("ask", func(ctx context.Context, s added) (added, error) {
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		s.Log.Append("asked")
		return s, err
	})
	writesMore.AddNode("after", func(_ context.Context, s added) (added, error) {
		s.Log.Append("after")
		s.Extra.Set("lost?")
		return s, nil
	})
	writesMore.AddEdge(superstep.Start, "ask")
	writesMore.AddEdge("ask", "after")

	server, err := temporal.Dial(temporal.Options{HostPort: testserver.Address(t)})
	require.NoError(t, err)
	defer server.Close()
	for name, mode := range map[string]superstep.RunOption{"sync": superstep.WithDurability(superstep.DurabilitySync), "fused": superstep.WithFused()} {
		for says, other := range map[string]superstep.Runnable{
			`field "log" is reduce with append/v1 in the run and last here`:               replaces.MustCompile(),
			`field "extra", which the node has written, is not in the run, and last here`: writesMore.MustCompile(),
		} {
			t.Run(name+" "+says[:11], func(t *testing.T) {
				givenBack(t, server, began, other, mode, says, "asked", "after")
			})
		}
	}
}

// givenBack begins a run of a graph that asks, has a worker with another version of the graph go on with it, which says why it does not, and
// then one with its own, which does.
func givenBack(t *testing.T, server temporal.Client, began *superstep.Graph[rig.Payment], other superstep.Runnable, mode superstep.RunOption, says string, log ...string) {
	queue := graphtest.ThreadID(t)
	client, err := superstep.NewClient(server, superstep.ClientConfig{TaskQueue: queue})
	require.NoError(t, err)
	stop := rig.RunWorker(t, server, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{began}})
	th := began.Thread(client, graphtest.ThreadID(t))
	got, err := th.Invoke(t.Context(), rig.Payment{}, mode)
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	stop()
	stop = rig.RunWorker(t, server, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{other}})
	_, err = client.Resume(t.Context(), thread.ResumeRequest{Thread: th.ID(), Question: got.Questions[0].ID, Value: []byte("true")})
	require.NoError(t, err)
	var view thread.View
	require.Eventually(t, func() bool {
		view, err = client.Show(t.Context(), th.ID())
		return err == nil && (view.Status != thread.StatusRunning || strings.Contains(view.Problem, says))
	}, 2*time.Minute, 50*time.Millisecond, "%s %+v", says, view)
	require.Equal(t, thread.StatusRunning, view.Status, view.Error)
	stop()
	defer rig.RunWorker(t, server, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{began}})()
	got, err = th.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	require.Equal(t, log, got.Output.Log.Get())
}

// An answer of an older type is set aside: the question is asked again as the new build asks it, and the run goes on with
// the answer to that.
func TestAnAnswerOfAnOlderTypeIsAskedForAgain(t *testing.T) {
	t.Parallel()
	numbers, texts := superstep.NewStateGraph[rig.Payment]("older"), superstep.NewStateGraph[rig.Payment]("older")
	numbers.AddNode("ask", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		n, err := superstep.Interrupt[int](ctx, "how many?")
		s.Log.Append(strings.Repeat("x", n))
		return s, err
	})
	texts.AddNode("ask", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		text, err := superstep.Interrupt[string](ctx, "how many?")
		s.Log.Append(text)
		return s, err
	})
	numbers.AddEdge(superstep.Start, "ask")
	texts.AddEdge(superstep.Start, "ask")
	before, after := numbers.MustCompile(), texts.MustCompile()
	server, err := temporal.Dial(temporal.Options{HostPort: testserver.Address(t)})
	require.NoError(t, err)
	defer server.Close()
	queue := graphtest.ThreadID(t)
	client, err := superstep.NewClient(server, superstep.ClientConfig{TaskQueue: queue})
	require.NoError(t, err)
	stop := rig.RunWorker(t, server, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{before}})
	th := after.Thread(client, graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), rig.Payment{}))
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	old := got.Questions[0].ID
	stop()
	defer rig.RunWorker(t, server, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{after}})()
	_, err = client.Resume(t.Context(), thread.ResumeRequest{Thread: th.ID(), Question: old, Value: []byte(`2`)})
	require.NoError(t, err, "as the question was asked")
	got, err = th.Wait(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	require.NotEqual(t, old, got.Questions[0].ID)
	_, err = client.Resume(t.Context(), thread.ResumeRequest{Thread: th.ID(), Question: got.Questions[0].ID, Value: []byte(`2`)})
	require.ErrorIs(t, err, thread.ErrBadInput)
	got, err = th.ResumeByID(t.Context(), map[string]any{got.Questions[0].ID: "two"})
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	require.Equal(t, []string{"two"}, got.Output.Log.Get())
}
