package rig

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/job"
	"superstep.dev/job/leader"
)

// Planner is one given as a function.
type Planner func(context.Context, job.PlanRequest) (job.Draft, error)

// Plan implements job.Planner.
func (p Planner) Plan(ctx context.Context, req job.PlanRequest) (job.Draft, error) {
	return p(ctx, req)
}

// LeaderOf is a leader named "lead".
func LeaderOf(t *testing.T, p job.Planner, experts ...leader.Expert) *leader.Leader {
	l, err := leader.New("lead", p, experts...)
	require.NoError(t, err)
	return l
}
