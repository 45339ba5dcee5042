package thread_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

type firstState struct {
	Out superstep.List[string] `json:"out"`
}

// TestTheFirstOfSeveralEvents ends the wait; the other one is for a later wait, also when both came before the node waited.
func TestTheFirstOfSeveralEvents(t *testing.T) {
	g := superstep.NewStateGraph[firstState]("first-of")
	g.AddNode("either", func(ctx context.Context, s firstState) (firstState, error) {
		first, err := superstep.WaitAny(ctx, []superstep.Awaited{superstep.EventOf[int]("done"), superstep.EventOf[string]("error")}, 0)
		if err != nil {
			return s, err
		}
		s.Out.Append(first.Name + " " + string(first.Value))
		return s, nil
	})
	g.AddNode("later", func(ctx context.Context, s firstState) (firstState, error) {
		n, err := superstep.WaitEvent[int](ctx, "done", 0)
		if err == nil {
			s.Out.Append("then " + string(rune('0'+n)))
		}
		return s, err
	})
	g.AddEdge(superstep.Start, "either")
	g.AddEdge("either", "later")
	pg := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := pg.Thread(rt, graphtest.ThreadID(t))
		r, err := th.Invoke(t.Context(), firstState{})
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaitingEvent, r.Status)
		v, err := th.Show(t.Context())
		require.NoError(t, err)
		require.Len(t, v.Waits, 2, "each event is shown")
		_, err = th.SendEvent(t.Context(), "done", "no number")
		require.ErrorIs(t, err, thread.ErrBadInput)
		_, err = th.SendEvent(t.Context(), "error", "boom")
		require.NoError(t, err)
		_, err = th.SendEvent(t.Context(), "done", 7)
		require.NoError(t, err)
		r, err = th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{`error "boom"`, "then 7"}, r.Output.Out.Get())
	}, pg)
}

// TestNoneOfSeveralEventsComesInTime.
func TestNoneOfSeveralEventsComesInTime(t *testing.T) {
	g := superstep.NewStateGraph[firstState]("none-of")
	g.AddNode("either", func(ctx context.Context, s firstState) (firstState, error) {
		_, err := superstep.WaitAny(ctx, []superstep.Awaited{superstep.EventOf[int]("done"), superstep.EventOf[int]("error")}, 50*time.Millisecond)
		if !errors.Is(err, superstep.ErrEventTimeout) {
			return s, err
		}
		s.Out.Append("late")
		return s, nil
	})
	g.AddEdge(superstep.Start, "either")
	pg := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := pg.Thread(rt, graphtest.ThreadID(t))
		assert.Equal(t, []string{"late"}, afterTimers(t, th).Output.Out.Get())
	}, pg)
}

// afterTimers runs a thread until no timer is open.
func afterTimers(t *testing.T, th *superstep.Thread[firstState]) superstep.Result[firstState] {
	t.Helper()
	r, err := th.Invoke(t.Context(), firstState{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		r, err = th.Wait(t.Context())
		return err != nil || r.Status == thread.StatusFinished
	}, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, err)
	return r
}

// TestAQuestionHasADeadline: after it the default answers, or the node hears of it; the audit has it, and an answer in time counts.
func TestAQuestionHasADeadline(t *testing.T) {
	ask := func(name string, opts ...superstep.CallOption) *superstep.Graph[firstState] {
		g := superstep.NewStateGraph[firstState](name)
		g.AddNode("ask", func(ctx context.Context, s firstState) (firstState, error) {
			a, err := superstep.Interrupt[string](ctx, "which?", opts...)
			if errors.Is(err, superstep.ErrAnswerTimeout) {
				a, err = "nobody", nil
			}
			s.Out.Append(a)
			return s, err
		})
		g.AddEdge(superstep.Start, "ask")
		return g.MustCompile()
	}
	soon := superstep.WithDeadline(50 * time.Millisecond)
	plain, filled := ask("deadline", soon), ask("deadline-default", soon, superstep.WithDefaultAnswer("blue"))
	patient := ask("deadline-far", superstep.WithDeadline(time.Hour), superstep.WithDefaultAnswer("blue"))
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for want, g := range map[string]*superstep.Graph[firstState]{"nobody": plain, "blue": filled} {
			th := g.Thread(rt, graphtest.ThreadID(t))
			assert.Equal(t, []string{want}, afterTimers(t, th).Output.Out.Get())
			audit, _, err := th.Audit(t.Context())
			require.NoError(t, err)
			require.Len(t, audit, 1)
			assert.Equal(t, approval.KindExpired, audit[0].Kind)
		}
		th := patient.Thread(rt, graphtest.ThreadID(t))
		_, err := th.Invoke(t.Context(), firstState{})
		require.NoError(t, err)
		v, err := th.Show(t.Context())
		require.NoError(t, err)
		require.Len(t, v.Questions, 1)
		assert.WithinDuration(t, time.Now().Add(time.Hour), v.Questions[0].Due, time.Minute)
		assert.JSONEq(t, `"blue"`, string(v.Questions[0].Default))
		r, err := th.Resume(t.Context(), "red")
		require.NoError(t, err)
		assert.Equal(t, []string{"red"}, r.Output.Out.Get())
	}, plain, filled, patient)
}

// TestADeadlineThatIsNoneIsRefused before anything is asked.
func TestADeadlineThatIsNoneIsRefused(t *testing.T) {
	for says, opts := range map[string][]superstep.CallOption{
		"needs WithDeadline": {superstep.WithDefaultAnswer("x")},
		"not above zero":     {superstep.WithDeadline(0)},
		"the default answer": {superstep.WithDeadline(time.Hour), superstep.WithDefaultAnswer(7)},
	} {
		_, err := superstep.Interrupt[string](graphtest.Context(t), "which?", opts...)
		assert.ErrorContains(t, err, says)
	}
}
