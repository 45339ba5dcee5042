package superstep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

type talk struct {
	Messages superstep.Messages     `json:"messages"`
	Turns    superstep.Value[int64] `json:"turns"`
}

// A retry does not change the ids of messages, and no two tasks give the same: not in one superstep, not in a loop.
func TestMessagesKeepTheirIDsWhenATaskIsAttemptedAgain(t *testing.T) {
	said := map[int]string{}
	say := func(ctx context.Context, s talk) (talk, error) {
		s.Messages.Append(superstep.Message{Role: superstep.RoleAssistant, Content: superstep.Text("ok")})
		last, _ := s.Messages.Last()
		info := superstep.Info(ctx)
		if info.Step == 1 {
			said[info.Attempt] = last.ID
		}
		if info.Step == 1 && info.Attempt < 3 {
			return s, errors.New("lost the connection")
		}
		s.Turns.Set(s.Turns.Get() + 1)
		return s, nil
	}
	g := superstep.NewStateGraph[talk]("talk")
	g.AddNode("say", say, superstep.WithRetry(superstep.RetryPolicy{InitialInterval: -1, NoJitter: true}))
	superstep.AddInputNode(g, "echo", func(context.Context, talk) (superstep.Command[talk], error) {
		var update talk
		update.Messages.Append(superstep.Message{Role: superstep.RoleAssistant, Content: superstep.Text("ok")})
		return superstep.Command[talk]{Update: update}, nil
	})
	g.AddEdge(superstep.Start, "say")
	g.AddEdge(superstep.Start, "echo")
	g.AddConditionalEdges("say", func(_ context.Context, s talk) ([]superstep.Target, error) {
		if s.Turns.Get() < 3 {
			return superstep.To("say", "echo"), nil
		}
		return nil, nil
	}, "say", "echo")
	got, err := g.MustCompile().Invoke(t.Context(), map[string]any{"messages": []any{}})
	require.NoError(t, err)
	assert.Len(t, said, 3)
	assert.Equal(t, said[1], said[2])
	assert.Equal(t, said[1], said[3])
	ids := map[string]bool{}
	for _, m := range got.Output.Messages.Get() {
		ids[m.ID] = true
	}
	assert.Len(t, ids, 6, "six messages of the same text")
	assert.True(t, ids[said[1]])
}
