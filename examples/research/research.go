// Package research is Superstep's example of a leader: four experts find out how the penguins of a public data set differ,
// check each other, ask a person what matters, and publish a report once.
//
//	load ─→ analyse ─→ check ─→ write           what the leader plans
//
//	load ─┬→ Adelie ────┬→ check ─→ write       what becomes of it: one species is enough for one analyst,
//	      ├→ Chinstrap ─┤                       and the critic sends back those who counted birds that
//	      └→ Gentoo ────┘                       nobody had measured
//
// What it shows:
//   - a subjob that turns out too complicated, and is planned again from what the expert found out;
//   - a critic who finds a real mistake in real data and blames those who made it: they work again with the lesson, the
//     others do not;
//   - experts that are graphs: [superstep.Task] for what is slow, a question to a person, an Effect that happens once;
//   - outputs that travel as JSON, and a table that travels by reference.
//
// The experts compute; no model is needed. With one configured ([FromEnv]) it makes the plans.
package research

import (
	"context"

	"superstep.dev"
	"superstep.dev/examples/research/store"
	"superstep.dev/job"
	"superstep.dev/job/leader"
)

// Leader returns the leader over a store. Intervals are of resamples samples: [figures.DefaultResamples] is enough for a
// report.
func Leader(p job.Planner, s *store.Store, resamples int) (*leader.Leader, error) {
	return leader.New("research", p, experts(s, resamples)...)
}

func experts(s *store.Store, resamples int) []leader.Expert {
	return []leader.Expert{loader(s), analyst(s, resamples), critic(s), writer(s)}
}

// do is the function of an expert.
type do func(context.Context, job.Assignment) (job.WorkflowMessage, error)

// free says of an expert, before it does anything, that it can tell what it spends: nothing, unless it spends something.
func free(work do) do {
	return func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		if err := superstep.Spend(ctx, superstep.Usage{}); err != nil {
			return job.WorkflowMessage{}, err
		}
		return work(ctx, a)
	}
}
