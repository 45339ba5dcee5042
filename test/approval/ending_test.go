package approval_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
