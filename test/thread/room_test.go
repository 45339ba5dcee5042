package thread_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// wide is the state of a fan-out.
type wide struct {
	Parts superstep.List[int]    `json:"parts"`
	Texts superstep.List[string] `json:"texts"`
	Sizes superstep.Sum[int64]   `json:"sizes"`
}

// fanOut has a node that runs for each of Parts at once, and returns what text says.
func fanOut(name string, text func() string) *superstep.Graph[wide] {
	g := superstep.NewStateGraph[wide](name)
	g.AddNode("plan", func(_ context.Context, s wide) (wide, error) { return s, nil })
	superstep.AddInputNode(g, "part", func(_ context.Context, n int) (c superstep.Command[wide], err error) {
		c.Update.Texts.Append(text())
		c.Update.Sizes.Add(1)
		return c, nil
	})
	g.AddEdge(superstep.Start, "plan")
	g.AddConditionalEdges("plan", func(_ context.Context, s wide) ([]superstep.Target, error) {
		return superstep.SendEach("part", s.Parts.Get()), nil
	}, "part")
	return g.MustCompile()
}

// TestResultsThatDoNotFitAHistory: tasks that return more together than the server keeps of a run end it with its state,
// before the server would, and a retry goes on from there.
func TestResultsThatDoNotFitAHistory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("fills histories to their end")
	}
	const parts = 60
	var small atomic.Bool
	g := fanOut("full", func() string {
		if small.Load() {
			return "x"
		}
		return strings.Repeat("x", 900_000)
	})
	c := graphtest.Temporal(t, g)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var in wide
	for n := range parts {
		in.Parts.Append(n)
	}
	th := g.Thread(c, graphtest.ThreadID(t))
	_, err := th.Invoke(ctx, in)
	var failure *superstep.NodeError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, "HistoryFull", failure.Type)
	view, err := c.Show(ctx, th.ID())
	require.NoError(t, err)
	require.Equal(t, thread.StatusOutOfBudget, view.Status)
	require.Less(t, view.HistoryBytes, int64(50<<20))
	require.Contains(t, view.Error, "do not fit the run's history")
	require.Contains(t, view.Error, "a retry runs all of it again")
	t.Logf("the history has %d bytes", view.HistoryBytes)

	small.Store(true)
	_, err = c.Retry(ctx, thread.RetryRequest{Thread: th.ID()})
	require.NoError(t, err)
	view, err = c.Wait(ctx, th.ID())
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, view.Status, "%s", view.Error)
	require.JSONEq(t, "60", string(view.Output["sizes"]))
}

// TestAWideSuperstepGoesOnInOtherRuns: a superstep of more tasks than its run's history has room for goes on in the runs that
// continue it. Each task runs once, and their writes are applied in the order of the Sends.
func TestAWideSuperstepGoesOnInOtherRuns(t *testing.T) {
	t.Parallel()
	const parts = 300
	var calls atomic.Int64
	g := fanOut("on", func() string {
		calls.Add(1)
		return "x"
	})
	s := rig.NewServerThatContinues(t, protocol.ContinueAt{Events: 100, HoldEvents: 300, Life: 1})
	s.Work(g)
	var in wide
	for n := range parts {
		in.Parts.Append(n)
	}
	th := g.Thread(s.Client, s.Queue)
	result, err := th.Invoke(t.Context(), in, superstep.WithMaxConcurrency(40))
	require.NoError(t, err)
	require.EqualValues(t, parts, calls.Load(), "a task that finished before its run was continued does not run again")
	require.EqualValues(t, parts, result.Output.Sizes.Get())
	require.Len(t, result.Output.Texts.Get(), parts)
	require.GreaterOrEqual(t, s.Continued(th.ID()), 2, "the superstep fitted one run")
}
