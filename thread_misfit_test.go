package superstep_test

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
)

// TestUpdatesThatDoNotFitAreRefused, with the field's name and before anything is stored: of a thread that does not exist,
// stands still, waits inside a subgraph or has finished, and on a branch from an earlier checkpoint.
func TestUpdatesThatDoNotFitAreRefused(t *testing.T) {
	sub := superstep.NewStateGraph[counter]("inside")
	sub.AddNode("x", appending("x"))
	sub.AddNode("y", asking("y"))
	sub.AddEdge(superstep.Start, "x")
	sub.AddEdge("x", "y")
	g := superstep.NewStateGraph[counter]("outside")
	g.AddNode("a", appending("a"))
	g.AddSubgraph("inner", sub.MustCompile())
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "inner")
	onRuntimes(t, g.MustCompile(superstep.WithInterruptBefore("inner")), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[counter]) {
		bad := map[string]string{
			`{"n":"seven"}`:                       `field "n": expected int64, found a string`,
			`{"n":7.5}`:                           `field "n"`,
			`{"log":"no list"}`:                   `field "log"`,
			`{"log":[1],"n":null}`:                `field "n"`,
			`{"log":{"__overwrite__":"no list"}}`: `field "log"`,
		}
		refused := func(opts ...superstep.UpdateOption) {
			t.Helper()
			for values, want := range bad {
				_, err := th.Update(t.Context(), json.RawMessage(values), opts...)
				require.ErrorIs(t, err, superstep.ErrBadInput, values)
				assert.ErrorContains(t, err, want, values)
			}
		}
		same := func(opts ...superstep.UpdateOption) {
			t.Helper()
			before := historyOf(t, th)
			refused(opts...)
			assert.Equal(t, before, historyOf(t, th), "nothing was stored")
		}
		refused(superstep.AsNode("a"))
		_, err := th.State(t.Context())
		require.ErrorIs(t, err, superstep.ErrNotFound)

		invoke(t, th, counter{})
		same(superstep.AsNode("a"))
		invoke(t, th, nil)
		same(superstep.InSubgraph("inner"), superstep.AsNode("x"))
		assert.Equal(t, []string{"x"}, logOf(t, th, superstep.InSubgraph("inner"))[1:])

		_, err = th.Update(t.Context(), json.RawMessage(`{"n":7,"log":{"__overwrite__":["new"]}}`), superstep.AsNode("inner"))
		require.NoError(t, err)
		assert.Equal(t, []string{"new"}, logOf(t, th))
		same(superstep.AsNode("inner"))
		same(superstep.AsNode("a"), superstep.AtCheckpoint(atStep(t, th, 1).Checkpoint))
	})
}

// A worker whose fields come together in another way than the run's gives its tasks back, and says which field that is; so
// does one that writes a field which the run does not have. The run goes on with a worker of its own version.
func TestAWorkerOfOtherFieldsGivesItsTasksBack(t *testing.T) {
	appends := superstep.NewStateGraph[payment]("fields")
	appends.AddNode("ask", func(ctx context.Context, s payment) (payment, error) {
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		s.Log.Append("asked")
		return s, err
	})
	appends.AddNode("after", func(_ context.Context, s payment) (payment, error) {
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
		payment
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
				queue := graphtest.ThreadID(t)
				client, err := superstep.NewClient(server, superstep.ClientConfig{TaskQueue: queue})
				require.NoError(t, err)
				stop := working(t, server, queue, began)
				th := began.Thread(client, graphtest.ThreadID(t))
				got, err := th.Invoke(t.Context(), payment{}, mode)
				require.NoError(t, err)
				require.Len(t, got.Questions, 1)
				stop()
				stop = working(t, server, queue, other)
				_, err = client.Resume(t.Context(), superstep.ResumeRequest{Thread: th.ID(), Question: got.Questions[0].ID, Value: []byte("true")})
				require.NoError(t, err)
				var view superstep.ThreadView
				require.Eventually(t, func() bool {
					view, err = client.Show(t.Context(), th.ID())
					return err == nil && strings.Contains(view.Problem, says)
				}, time.Minute, 50*time.Millisecond, "%s %+v", says, view)
				require.Equal(t, superstep.StatusRunning, view.Status)
				stop()
				defer working(t, server, queue, began)()
				got, err = th.Wait(t.Context())
				require.NoError(t, err)
				require.Equal(t, superstep.StatusFinished, got.Status)
				require.Equal(t, []string{"asked", "after"}, got.Output.Log.Get())
			})
		}
	}
}

// working runs a worker of a graph until it is stopped.
func working(t *testing.T, server temporal.Client, queue string, graph superstep.Runnable) (stop func()) {
	t.Helper()
	ready, ended := make(chan struct{}), make(chan error, 1)
	w, err := superstep.NewWorker(server, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{graph}, OnReady: func() { close(ready) }})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { ended <- w.Run(ctx) }()
	<-ready
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// An answer of an older type is set aside: the question is asked again as the new build asks it, and the run goes on with
// the answer to that.
func TestAnAnswerOfAnOlderTypeIsAskedForAgain(t *testing.T) {
	numbers, texts := superstep.NewStateGraph[payment]("older"), superstep.NewStateGraph[payment]("older")
	numbers.AddNode("ask", func(ctx context.Context, s payment) (payment, error) {
		n, err := superstep.Interrupt[int](ctx, "how many?")
		s.Log.Append(strings.Repeat("x", n))
		return s, err
	})
	texts.AddNode("ask", func(ctx context.Context, s payment) (payment, error) {
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
	stop := working(t, server, queue, before)
	th := after.Thread(client, graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), payment{}))
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	old := got.Questions[0].ID
	stop()
	defer working(t, server, queue, after)()
	_, err = client.Resume(t.Context(), superstep.ResumeRequest{Thread: th.ID(), Question: old, Value: []byte(`2`)})
	require.NoError(t, err, "as the question was asked")
	got, err = th.Wait(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	require.NotEqual(t, old, got.Questions[0].ID)
	_, err = client.Resume(t.Context(), superstep.ResumeRequest{Thread: th.ID(), Question: got.Questions[0].ID, Value: []byte(`2`)})
	require.ErrorIs(t, err, superstep.ErrBadInput)
	got, err = th.ResumeByID(t.Context(), map[string]any{got.Questions[0].ID: "two"})
	require.NoError(t, err)
	require.Equal(t, superstep.StatusFinished, got.Status)
	require.Equal(t, []string{"two"}, got.Output.Log.Get())
}
