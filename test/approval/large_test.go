package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphtest"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// bulk is a state that may be more than a reply of the server takes.
type bulk struct {
	Do   superstep.Value[string] `json:"do"`
	A    superstep.Value[string] `json:"a"`
	B    superstep.Value[string] `json:"b"`
	Said superstep.List[string]  `json:"said"`
}

// bulky asks 36 questions of 50 KB, one of 1.2 MB, one that is too large, or, over a state of 2.5 MB, for an approval.
func bulky() *superstep.Graph[bulk] {
	g := superstep.NewStateGraph[bulk]("bulky")
	kilobytes := func(n int) string { return strings.Repeat("x", n*1000) }
	g.AddNode("fill", func(_ context.Context, s bulk) (bulk, error) {
		if s.Do.Get() == "approve" {
			s.A.Set(kilobytes(1250))
		}
		return s, nil
	})
	g.AddNode("fill_more", func(_ context.Context, s bulk) (bulk, error) {
		if s.Do.Get() == "approve" {
			s.B.Set(kilobytes(1250))
		}
		return s, nil
	})
	g.AddNode("ask", func(ctx context.Context, s bulk) (bulk, error) {
		switch s.Do.Get() {
		case "many":
			asked := make([]*superstep.Future[string], 36)
			for i := range asked {
				asked[i] = superstep.Go(ctx, fmt.Sprintf("part %d", i), func(ctx context.Context) (string, error) {
					return superstep.Interrupt[string](ctx, fmt.Sprintf("%d? %s", i, kilobytes(50)))
				})
			}
			for _, a := range asked {
				said, err := a.Get(ctx)
				if err != nil {
					return s, err
				}
				s.Said.Append(said)
			}
			return s, nil
		case "large":
			said, err := superstep.Interrupt[string](ctx, kilobytes(1200))
			s.Said.Append(said)
			return s, err
		case "too large":
			_, err := superstep.Interrupt[string](ctx, kilobytes(1600))
			return s, err
		}
		_, err := superstep.Approve(ctx, approval.Action{Tool: "send", Summary: "Send it?", Params: json.RawMessage(`"all"`)})
		s.Said.Append("approved")
		return s, err
	})
	g.AddEdge(superstep.Start, "fill")
	g.AddEdge("fill", "fill_more")
	g.AddEdge("fill_more", "ask")
	return g.MustCompile()
}

// TestALargeWaitIsAnswered: what an answer needs is asked without the values, whatever the run has.
func TestALargeWaitIsAnswered(t *testing.T) {
	g := bulky()
	c := graphtest.Temporal(t, g)
	begin := func(t *testing.T, do string) (context.Context, thread.View) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		t.Cleanup(cancel)
		view, err := c.Start(ctx, thread.StartRequest{Graph: "bulky", Thread: testserver.Queue(t), Input: json.RawMessage(fmt.Sprintf(`{"do": %q}`, do))})
		require.NoError(t, err)
		view, err = c.Follow(ctx, view, func(thread.Progress) {})
		require.NoError(t, err)
		return ctx, view
	}
	ends := func(t *testing.T, ctx context.Context, threadID string, want ...string) {
		view, err := c.Wait(ctx, threadID)
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, view.Status, "%s", view.Error)
		state, err := c.State(ctx, thread.StateRequest{Thread: threadID})
		require.NoError(t, err)
		var said []string
		require.NoError(t, json.Unmarshal(state.Values["said"], &said))
		require.Equal(t, want, said)
	}
	t.Run("many", func(t *testing.T) {
		t.Parallel()
		ctx, view := begin(t, "many")
		require.Equal(t, thread.StatusWaiting, view.Status)
		require.Empty(t, view.Problem, "its history tells what a reply does not take")
		require.Len(t, view.Questions, 36)
		require.Greater(t, len(view.Questions[7].Text()), 50_000)
		q, err := c.Question(ctx, view.Thread, view.Questions[7].ID)
		require.NoError(t, err)
		require.Equal(t, view.Questions[7].Value, q.Value)
		require.Len(t, q.Others, 35)
		require.Contains(t, q.Others[0].Text(), "? xxx")
		require.Less(t, len(q.Others[0].Text()), 400, "the others have a line each")
		_, err = c.Resume(ctx, thread.ResumeRequest{Thread: view.Thread, Value: json.RawMessage(`"which?"`)})
		require.ErrorIs(t, err, thread.ErrBadInput)
		require.ErrorContains(t, err, view.Questions[35].ID)
		want := make([]string, 36)
		for _, q := range view.Questions {
			part, _, _ := strings.Cut(q.Text(), "?")
			i, err := strconv.Atoi(part)
			require.NoError(t, err)
			want[i] = "answer " + part
			reply, err := c.Resume(ctx, thread.ResumeRequest{Thread: view.Thread, Question: q.ID, Value: json.RawMessage(fmt.Sprintf("%q", want[i]))})
			require.NoError(t, err)
			require.True(t, reply.Accepted)
		}
		ends(t, ctx, view.Thread, want...)
	})
	t.Run("large", func(t *testing.T) {
		t.Parallel()
		ctx, view := begin(t, "large")
		q, err := c.Question(ctx, view.Thread, "")
		require.NoError(t, err)
		require.Len(t, q.Text(), 1_200_000)
		_, err = c.Resume(ctx, thread.ResumeRequest{Thread: view.Thread, Value: json.RawMessage(`"yes"`)})
		require.NoError(t, err)
		ends(t, ctx, view.Thread, "yes")
	})
	t.Run("approve", func(t *testing.T) {
		t.Parallel()
		ctx, view := begin(t, "approve")
		require.Equal(t, thread.StatusWaiting, view.Status)
		require.Equal(t, 1, view.Questions[0].Approval.Need)
		q, err := c.Question(ctx, view.Thread, "")
		require.NoError(t, err)
		require.Equal(t, "Send it?", q.Approval.Summary)
		_, err = c.Resume(ctx, thread.ResumeRequest{Thread: view.Thread, Value: json.RawMessage(`{"verdict": "approve"}`),
			Token: graphtest.Token(view.Thread, q.Question, "ann")})
		require.NoError(t, err)
		view, err = c.Wait(ctx, view.Thread)
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, view.Status, "%s", view.Error)
	})
}

// TestAQuestionThatNobodyCanBeShownIsNotAsked, on any runtime.
func TestAQuestionThatNobodyCanBeShownIsNotAsked(t *testing.T) {
	g := bulky()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		var in bulk
		in.Do.Set("too large")
		_, err := g.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), in)
		var failure *superstep.NodeError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, "QuestionTooLarge", failure.Type)
		require.Contains(t, failure.Message, "asks a question of 1600019 bytes, at most 1572864 can be shown")
	}, g)
}
