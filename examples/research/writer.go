package research

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"superstep.dev"
	"superstep.dev/examples/research/figures"
	"superstep.dev/examples/research/store"
	"superstep.dev/job"
	"superstep.dev/job/leader"
)

// Lead is the writer's question: with which measure the report begins. Its answer is one of the measures.
type Lead struct {
	Question string   `json:"question"`
	Choices  []Choice `json:"choices"`
}

// Choice is a measure with which a report can begin.
type Choice struct {
	Measure figures.Measure `json:"measure"`
	// Separation says how far the species are apart in it, in standard deviations.
	Separation float64 `json:"separation"`
}

// writer asks with what to begin, and publishes the report once.
func writer(s *store.Store) leader.Expert {
	publish := publishEffect(s)
	return leader.NewExpert("writer", "Writes the report, asks a person which measure leads it, and publishes it. Needs the "+
		"critic's review as an input, of all species that the report is to have. Returns the report's text and where it is.",
		free(func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			analyses := reviewed(a)
			if len(analyses) == 0 {
				return unusable("no input has figures that were checked", "Check the analyses: there is nothing to write about."), nil
			}
			lead, err := superstep.Interrupt[figures.Measure](ctx, question(analyses), superstep.WithAnswerSchema(measureSchema()))
			if err != nil {
				return job.WorkflowMessage{}, err
			}
			if err := superstep.Spend(ctx, superstep.Usage{Writes: 1}); err != nil {
				return job.WorkflowMessage{}, err
			}
			report := store.Report{Job: a.Job, Text: figures.Report(a.JobGoal, analyses, lead)}
			receipt, err := publish.Call(ctx, report)
			if err != nil {
				return job.WorkflowMessage{}, err
			}
			return job.WorkflowMessage{Status: job.Success, Output: report.Text,
				Artifacts: []job.Artifact{{Name: "report", URI: receipt.URI, Kind: "text/markdown"}}}, nil
		}), leader.WithEntrypoint(superstep.WithEffects(publish), superstep.WithTimeout(time.Minute, 0)))
}

// reviewed are the analyses that a critic has passed on.
func reviewed(a job.Assignment) (analyses []figures.Analysis) {
	reviews, _ := decoded(a, func(r Review) bool { return len(r.Analyses) > 0 })
	for _, r := range reviews {
		analyses = append(analyses, r.Analyses...)
	}
	return analyses
}

// question asks with which measure to begin, the one that tells the species apart best first.
func question(analyses []figures.Analysis) Lead {
	q := Lead{Question: "Which measure should lead the report?"}
	for _, m := range figures.BySeparation(analyses) {
		q.Choices = append(q.Choices, Choice{m, math.Round(100*figures.Separation(analyses, m)) / 100})
	}
	return q
}

// measureSchema refuses what was not measured when the answer is given.
func measureSchema() string {
	measures, _ := json.Marshal(figures.Measures) // strings always encode
	return fmt.Sprintf(`{"enum": %s}`, measures)
}

// publishEffect is the write that must happen once. The store makes a second call with the same key a no-op, and can be
// asked what it has under a key.
func publishEffect(s *store.Store) *superstep.Effect[store.Report, store.Receipt] {
	return &superstep.Effect[store.Report, store.Receipt]{
		Name: "report.publish", Target: superstep.TargetKeyed,
		Do: s.Publish,
		Lookup: func(ctx context.Context, key string, r store.Report) (superstep.Finding[store.Receipt], error) {
			receipt, found, err := s.FindReport(ctx, key, r)
			if !found {
				return superstep.Finding[store.Receipt]{Status: superstep.FindingNotFound}, err
			}
			return superstep.Finding[store.Receipt]{Status: superstep.FindingCommitted, Receipt: receipt}, err
		},
		Compensate: func(ctx context.Context, _ string, _ store.Report, receipt store.Receipt) error {
			return s.Withdraw(ctx, receipt)
		},
	}
}
