package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
)

// loading is a graph whose first node loads a list of that many bytes, which its second node reads.
func loading(bytes int) *graphadapter.Graph {
	return &graphadapter.Graph{
		Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "loading",
			Channels: []pregel.ChannelSpec{{Name: "ask", Kind: pregel.KindLast}, {Name: "text", Kind: pregel.KindLast}},
			Nodes:    []pregel.NodeSpec{{Name: "load"}, {Name: "read"}},
			Edges:    []pregel.Edge{{From: pregel.Start, To: "load"}, {From: "load", To: "read"}},
		},
		Nodes: map[string]graphadapter.Node{
			"load": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
				text := pregel.Value(`["` + strings.Repeat("x", bytes) + `"]`)
				return pregel.Command{Update: []pregel.Write{{Channel: "text", Value: text}}}, nil
			}},
			"read": {Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
				task, _ := taskrun.TaskFrom(ctx)
				return pregel.Command{}, read(task.Decoded(), in.State["text"])
			}},
		},
	}
}

// read decodes a list, and keeps it in a map.
func read(values *sync.Map, list pregel.Held) error {
	kept, _ := values.LoadOrStore("text", &jsonfit.Kept[[]string]{})
	_, err := kept.(*jsonfit.Kept[[]string]).Decode(list, false)
	return err
}

// opens runs a graph in the opening of a segment, which its run ends in.
func opens(t *testing.T, n *Nodes, g *graphadapter.Graph, thread string) {
	t.Helper()
	program, err := g.Program()
	require.NoError(t, err)
	loop, err := program.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{"ask":"x"}`)}, graphadapter.RunOptions{}.Engine(), false, nil)
	require.NoError(t, err)
	frozen, err := loop.Freeze()
	require.NoError(t, err)
	opening := segment.Opening{Request: segment.Request{Graph: g.Spec.Name, Thread: thread, Durability: graphadapter.DurabilityExit, LedgerBytes: 1 << 10},
		Run: frozen}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: thread, TaskQueue: "q"})
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
		return workflow.ExecuteLocalActivity(ctx, func(ctx context.Context) error {
			if whole, err := n.Open(ctx, opening); err != nil || whole == nil {
				return errors.Join(err, errors.New("the run did not end in the opening"))
			}
			return nil
		}).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "opens"})
	env.ExecuteWorkflow("opens")
	require.NoError(t, env.GetWorkflowError())
}

// TestWhatIsDecodedIsBounded: what the nodes of a segment decode counts, and not only what there was when it began.
func TestWhatIsDecodedIsBounded(t *testing.T) {
	t.Parallel()
	unused, err := client.NewLazyClient(client.Options{})
	require.NoError(t, err)
	const each = 700 << 10
	g := loading(each)
	n := NewNodes(unused, []*graphadapter.Graph{g})
	threads := 0
	for range decodedBytes/each + 10 {
		opens(t, n, g, fmt.Sprint("thread-", threads))
		threads++
	}
	kept, bytes := n.decoded.of.Items(), uint64(0)
	for _, item := range kept {
		bytes += jsonfit.KeptBytes(item.Value().values)
	}
	require.LessOrEqual(t, bytes, uint64(decodedBytes))
	require.Greater(t, bytes, uint64(decodedBytes-2*each), "as much as may be is kept")
	require.Contains(t, kept, fmt.Sprint("thread-", threads-1))
	require.NotContains(t, kept, "thread-0")
}

// TestWhatIsDecodedIsDropped though nothing else comes, and what is still read is not.
func TestWhatIsDecodedIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d decoded
		list := pregel.Hold(pregel.Value(`["` + strings.Repeat("x", jsonfit.MinKept) + `"]`))
		for _, thread := range []string{"a", "b"} {
			values := d.ofThread(thread)
			require.NoError(t, read(values, list))
			d.keep(thread, values)
			require.Same(t, values, d.ofThread(thread))
		}
		dropped := func() uint64 {
			synctest.Wait()
			return d.of.Metrics().Evictions
		}
		for range 4 {
			time.Sleep(decodedTime/2 + time.Second)
			d.ofThread("b")
		}
		require.EqualValues(t, 1, dropped())
		require.Positive(t, jsonfit.KeptBytes(d.ofThread("b")))
		time.Sleep(2*decodedTime + time.Second)
		require.EqualValues(t, 2, dropped())
		require.False(t, d.drops)
	})
}
