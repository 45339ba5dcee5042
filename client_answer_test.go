package superstep_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev"
	"superstep.dev/workflows/protocol"
)

// early refuses the first answers, as a run does that has yet to come to the question which a query has shown.
type early struct {
	client.Client
	left atomic.Int64
	sent atomic.Int64
}

func (e *early) UpdateWorkflow(ctx context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	e.sent.Add(1)
	if e.left.Add(-1) >= 0 {
		return nil, temporal.NewApplicationError("the question is not open on this thread", protocol.ErrTypeUnknownQuestion)
	}
	return e.Client.UpdateWorkflow(ctx, o)
}

// TestAnAnswerThatComesTooEarlyIsSentAgain: a question that is shown can be answered, also when the run has not come to it
// yet; an answer that is refused time after time is not sent for ever.
func TestAnAnswerThatComesTooEarlyIsSentAgain(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[counter]("early")
	b.AddNode("ask", asking("ask"))
	b.AddEdge(superstep.Start, "ask")
	g := b.MustCompile()
	s := newServer(t)
	s.work(g)
	conn := &early{Client: s.temporal}
	c, err := superstep.NewClient(conn, superstep.ClientConfig{TaskQueue: s.queue})
	require.NoError(t, err)
	th := g.Thread(s.Client, s.queue)
	invoke(t, th, counter{})
	view, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	require.Len(t, view.Questions, 1)
	answer := superstep.ResumeRequest{Thread: th.ID(), Question: view.Questions[0].ID, Value: []byte(`true`)}

	conn.left.Store(100)
	_, err = c.Resume(t.Context(), answer)
	require.ErrorIs(t, err, superstep.ErrNotFound)
	assert.EqualValues(t, 4, conn.sent.Load())

	conn.left.Store(1)
	reply, err := c.Resume(t.Context(), answer)
	require.NoError(t, err)
	assert.True(t, reply.Accepted)
	_, err = s.Wait(t.Context(), th.ID())
	require.NoError(t, err)
}
