package research

import (
	"context"
	"fmt"
	"strings"

	"superstep.dev"
	"superstep.dev/examples/research/figures"
	"superstep.dev/examples/research/store"
	"superstep.dev/job"
	"superstep.dev/job/leader"
)

// critic checks the analysts' figures against the birds.
func critic(s *store.Store) leader.Expert {
	return leader.NewExpert("critic", "Checks the analysts' figures against the birds themselves, and sends back those "+
		"that are wrong. Needs all analyses as inputs. Returns the figures that are right as JSON.",
		free(func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			table, ok := birdsOf(a)
			if !ok {
				return noBirds(), nil
			}
			m, err := superstep.Task(ctx, "check", func(context.Context) (job.WorkflowMessage, error) {
				birds, err := readBirds(s, table)
				if err != nil {
					return job.WorkflowMessage{}, err
				}
				return judge(birds, a)
			})
			return m, err
		}))
}

// judge returns a review, or whose figures are wrong and why.
func judge(birds figures.Table, a job.Assignment) (job.WorkflowMessage, error) {
	analyses, from := decoded(a, func(a figures.Analysis) bool { return a.Species != "" && len(a.Figures) > 0 })
	if len(analyses) == 0 {
		return unusable("no input has an analysis", "Describe a species: this was to be checked and there is none."), nil
	}
	var blames, reasons []string
	checked := 0
	for i, analysis := range analyses {
		checked += len(analysis.Figures)
		if wrong := figures.Check(birds, analysis); len(wrong) > 0 {
			blames = append(blames, from[i])
			reasons = append(reasons, reason(wrong))
		}
	}
	if len(blames) > 0 {
		return unusable(fmt.Sprintf("%d of %d analyses are wrong", len(blames), len(analyses)),
			"Take every mean "+string(figures.PerMeasuredBird)+". "+strings.Join(reasons, " "), blames...), nil
	}
	return message(job.Success, Review{analyses, checked})
}

// reason is what is wrong with an analysis: its last finding, and how many more there are.
func reason(wrong []figures.Finding) string {
	last := wrong[len(wrong)-1]
	text := fmt.Sprintf("%s, %s: %s", last.Species, last.Measure, last.Text)
	if others := len(wrong) - 1; others > 0 {
		text += fmt.Sprintf(" (and %d more)", others)
	}
	return text + "."
}
