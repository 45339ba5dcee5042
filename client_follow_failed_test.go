package superstep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// TestFollowingAFailure: whatever the mode, a node that failed is shown as failed, with its error, and what a node took is
// told.
func TestFollowingAFailure(t *testing.T) {
	const nap = 20 * time.Millisecond
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := superstep.NewStateGraph[counter]("follows_failure")
			b.AddNode("works", func(_ context.Context, s counter) (counter, error) {
				time.Sleep(nap) // the time is what is tested
				return s, nil
			})
			b.AddNode("breaks", func(_ context.Context, s counter) (counter, error) {
				return s, superstep.Permanent(errors.New("the books are closed"))
			})
			b.AddEdge(superstep.Start, "works")
			b.AddEdge("works", "breaks")
			g := b.MustCompile(opts...)
			s := newServer(t)
			s.work(g)
			started, err := s.Start(t.Context(), superstep.StartRequest{Graph: g.Name(), Thread: s.queue, Input: []byte(`{}`)})
			require.NoError(t, err)
			ended := map[string]superstep.Progress{}
			v, err := s.Follow(t.Context(), started, func(p superstep.Progress) {
				if p.State != superstep.ProgressStarted {
					ended[p.Node] = p
				}
			})
			require.NoError(t, err)
			assert.Equal(t, superstep.StatusFailed, v.Status)
			assert.Equal(t, superstep.ProgressOK, ended["works"].State)
			assert.GreaterOrEqual(t, ended["works"].Duration, nap)
			assert.Less(t, ended["works"].Duration, 10*time.Second)
			assert.Equal(t, superstep.ProgressFailed, ended["breaks"].State)
			assert.Contains(t, ended["breaks"].Error, "the books are closed")
		})
	}
}
