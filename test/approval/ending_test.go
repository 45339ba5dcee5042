package approval_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// slowly is a directory that answers when it is let, and says that it was asked.
type slowly struct {
	staff
	asked chan struct{}
	let   chan struct{}
}

func (d slowly) Person(ctx context.Context, name string) (approval.Person, error) {
	select {
	case d.asked <- struct{}{}:
	default:
	}
	select {
	case <-d.let:
		return d.staff.Person(ctx, name)
	case <-ctx.Done():
		return approval.Person{}, ctx.Err()
	}
}

// TestARunThatEndsWhileItsGateIsAsked: what the gate allows then is refused, and the run ends. Before anything else the gate is asked within
// the workflow task, for a second; the run is cancelled when it is asked again, by an activity.
func TestARunThatEndsWhileItsGateIsAsked(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(context.Context, *superstep.Thread[rig.Payment], *controlled) error{
		"an update": func(ctx context.Context, th *superstep.Thread[rig.Payment], c *controlled) error {
			var more rig.Payment
			more.Log.Append("by hand")
			_, err := th.Update(ctx, more, superstep.AsNode("second"), c.by(t, "ann", th.ID(), approval.OpUpdate, ""))
			return err
		},
		"a command": func(ctx context.Context, th *superstep.Thread[rig.Payment], c *controlled) error {
			var more rig.Payment
			more.Log.Append("by hand")
			_, err := th.Command(ctx, superstep.Command[rig.Payment]{Update: more}, c.by(t, "ann", th.ID(), approval.OpUpdate, ""))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newControlled(t)
			people := slowly{staff: c.staff, asked: make(chan struct{}), let: make(chan struct{})}
			c.gate.Directory = people
			s := rig.NewServer(t)
			s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{c.Graph}, Gate: c.gate})
			th := c.Waits(t, s.Client)
			outcome := make(chan error, 1)
			go func() { outcome <- act(t.Context(), th, c) }()
			<-people.asked
			<-people.asked
			require.NoError(t, s.Temporal.CancelWorkflow(t.Context(), th.ID(), ""))
			require.Eventually(t, func() bool { // the run has heard of it, and waits for the gate
				v, err := s.Show(t.Context(), th.ID())
				return err == nil && v.Status == thread.StatusCancelled
			}, rig.Steady, rig.Steady/100)
			close(people.let)
			err := <-outcome
			assert.ErrorIs(t, err, thread.ErrRunning)
			assert.ErrorContains(t, err, "about to end")
			v, err := s.Wait(t.Context(), th.ID())
			require.NoError(t, err)
			assert.Equal(t, thread.StatusCancelled, v.Status)
			assert.False(t, v.Closed.IsZero())
		})
	}
}

// TestARunIsKeptOpenForWhomItsGateIsAskedAbout: who came before the time was over is not refused, although the gate allows it only after.
func TestARunIsKeptOpenForWhomItsGateIsAskedAbout(t *testing.T) {
	t.Parallel()
	c := newControlled(t)
	people := slowly{staff: c.staff, asked: make(chan struct{}), let: make(chan struct{})}
	c.gate.Directory = people
	b := superstep.NewStateGraph[rig.Counter]("kept_open_for_a_gate")
	b.AddNode("note", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		s.Log.Append("noted")
		return s, nil
	})
	b.AddEdge(superstep.Start, "note")
	g := b.MustCompile()
	s := rig.NewServer(t)
	s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Gate: c.gate})
	th := g.Thread(s, uuid.NewString())
	first, err := th.Invoke(t.Context(), rig.Counter{}, superstep.WithKeepOpen(2*time.Second))
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, first.Status)
	outcome := make(chan error, 1)
	go func() {
		var more rig.Counter
		more.Log.Append("by hand")
		_, err := th.Update(t.Context(), more, superstep.AsNode("note"), c.by(t, "ann", th.ID(), approval.OpUpdate, ""))
		outcome <- err
	}()
	<-people.asked
	<-people.asked // by an activity, as the first second is over
	require.Eventually(t, func() bool { return s.Events(th.ID(), enumspb.EVENT_TYPE_TIMER_FIRED) > 0 }, rig.Steady, rig.Steady/100)
	close(people.let)
	require.NoError(t, <-outcome)
	v, err := s.Wait(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, v.Status)
	assert.Equal(t, []string{"noted", "by hand"}, rig.LogOf(t, th))
	require.Eventually(t, func() bool {
		v, err := s.Show(t.Context(), th.ID())
		return err == nil && !v.Closed.IsZero()
	}, rig.Steady, rig.Steady/100, "the run ends behind the update")
}
