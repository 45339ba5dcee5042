package serving_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// unleading is a leader without experts.
type unleading struct{ name string }

func (l unleading) Name() string                 { return l.name }
func (l unleading) Planner() job.Planner         { return nothingPlanned{} }
func (l unleading) Experts() []job.Profile       { return nil }
func (l unleading) Graphs() []superstep.Runnable { return nil }

type nothingPlanned struct{ job.Planner }

// TestAWorkerSaysWhatItCannotServe: what its configuration lacks is an error that says so, and no worker is made.
func TestAWorkerSaysWhatItCannotServe(t *testing.T) {
	t.Parallel()
	at, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	require.NoError(t, err)
	t.Cleanup(at.Close)
	graph := func() superstep.Runnable {
		type state struct {
			Done superstep.Value[bool] `json:"done"`
		}
		g := superstep.NewStateGraph[state]("twin")
		g.AddNode("node", func(_ context.Context, s state) (state, error) { return s, nil })
		g.AddEdge(superstep.Start, "node")
		return g.MustCompile()
	}
	for says, c := range map[string]struct {
		client client.Client
		cfg    superstep.WorkerConfig
	}{
		"a Worker needs a Temporal client":    {nil, superstep.WorkerConfig{Graphs: []superstep.Runnable{graph()}}},
		"a worker needs a graph or a leader":  {at, superstep.WorkerConfig{}},
		`two graphs are called "twin"`:        {at, superstep.WorkerConfig{Graphs: []superstep.Runnable{graph(), graph()}}},
		`two leaders are called "boss"`:       {at, superstep.WorkerConfig{Graphs: []superstep.Runnable{graph()}, Leaders: []superstep.Leader{unleading{"boss"}, unleading{"boss"}}}},
		"WorkerConfig.LostAfter is 1ns: give": {at, superstep.WorkerConfig{Graphs: []superstep.Runnable{graph()}, LostAfter: 1}},
	} {
		w, err := superstep.NewWorker(c.client, c.cfg)
		require.ErrorIs(t, err, thread.ErrBadInput, says)
		require.ErrorContains(t, err, says)
		require.Nil(t, w)
	}
}
