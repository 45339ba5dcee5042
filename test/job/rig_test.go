package job_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// steered is what a leader's expert does in these tests.
type steered struct {
	*rig.Server
	leader *leader.Leader
	hold   atomic.Bool // attempts wait for their end
	fail   atomic.Bool
	ran    atomic.Int32
	long   string
}

// newSteered serves a leader of two subjobs, "first" and behind it "then".
func newSteered(t *testing.T) *steered {
	s := &steered{Server: rig.NewServer(t)}
	work := leader.NewExpert("work", "Does what the test wants.", func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		s.ran.Add(1)
		switch {
		case a.Goal == "ask":
			name, err := superstep.Interrupt[string](ctx, "who?")
			if err != nil {
				return job.WorkflowMessage{}, err
			}
			return success(name)
		case s.hold.Load() && len(a.Inputs) > 0:
			<-ctx.Done()
			return job.WorkflowMessage{}, ctx.Err()
		case s.fail.Load() && len(a.Inputs) > 0:
			return job.WorkflowMessage{Status: job.ExecutionError, Lesson: "it is broken"}, nil
		case a.Goal == "long":
			return success(s.long)
		case len(a.Inputs) > 0:
			return success("after " + a.Inputs[0].Text)
		}
		return success("first")
	})
	s.leader = rig.LeaderOf(t, rig.Planner(func(_ context.Context, req job.PlanRequest) (job.Draft, error) {
		if req.Job.Goal == "unplannable" {
			return job.Draft{}, superstep.Permanent(errors.New("no model answers"))
		}
		return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: req.Job.Goal, Expert: "work"},
			{ID: "2", Goal: "then", Expert: "work", Dependencies: []string{"1"}}}}, nil
	}), work)
	s.WorkWith(superstep.WorkerConfig{Leaders: []superstep.Leader{s.leader}})
	return s
}

func (s *steered) submit(j job.Job) string {
	s.T.Helper()
	if j.ID == "" {
		j.ID = "j" + testserver.Queue(s.T)
	}
	if j.Policy.MaxRetries == 0 {
		j.Policy.MaxRetries = -1
	}
	v, err := s.SubmitJob(s.T.Context(), thread.SubmitJob{Leader: "lead", Job: j})
	require.NoError(s.T, err)
	require.Equal(s.T, "lead", v.Leader)
	return v.ID
}

// until follows a job up to an event of that kind.
func (s *steered) until(id, kind string) (all []job.Event) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), 2*time.Minute)
	defer cancel()
	for e, err := range s.FollowJob(ctx, id, 0) {
		require.NoError(s.T, err)
		if all = append(all, e); e.Kind == kind {
			return all
		}
	}
	require.FailNow(s.T, "the job ended without "+kind)
	return nil
}
