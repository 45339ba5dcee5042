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

// analyst describes one species. Its first way to take a mean is the quick one; a lesson can teach it the other.
func analyst(s *store.Store, resamples int) leader.Expert {
	return leader.NewExpert("analyst", "Describes the birds of one species, which its goal must name, by means, standard "+
		"deviations and confidence intervals of everything that was measured. Needs the loader's table as an input. Returns "+
		"the figures as JSON. Cannot do several species at once, and judges nothing.",
		free(func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			table, ok := birdsOf(a)
			if !ok {
				return noBirds(), nil
			}
			birds, err := readBirds(s, table)
			if err != nil {
				return job.WorkflowMessage{}, err
			}
			wanted := named(birds.Species(), a.Goal)
			if len(wanted) != 1 {
				return tooMany(wanted)
			}
			analysis, err := describe(ctx, birds, wanted[0], method(a), resamples)
			if err != nil {
				return job.WorkflowMessage{}, err
			}
			m, err := message(job.Success, analysis)
			m.Artifacts = []job.Artifact{table} // for whoever checks the figures
			return m, err
		}))
}

// named are the species that a goal names, all that there are when it names none.
func named(species []string, goal string) []string {
	var wanted []string
	for _, one := range species {
		if strings.Contains(strings.ToLower(goal), strings.ToLower(one)) {
			wanted = append(wanted, one)
		}
	}
	if wanted == nil {
		return species
	}
	return wanted
}

func tooMany(species []string) (job.WorkflowMessage, error) {
	m, err := message(job.TooComplicated, TooMany{species})
	m.Evaluation = fmt.Sprintf("%d species are more than one subjob can describe", len(species))
	m.Lesson = "Plan one subjob for each species, named in its goal: " + strings.Join(species, ", ") + "."
	return m, err
}

// method is how means are taken: as a lesson says, the quick way without one.
func method(a job.Assignment) figures.Method {
	for _, lesson := range a.Lessons {
		if strings.Contains(lesson, string(figures.PerMeasuredBird)) {
			return figures.PerMeasuredBird
		}
	}
	return figures.PerBird
}

// describe computes all figures of a species. Each is remembered: a worker that is lost costs the one under way.
func describe(ctx context.Context, birds figures.Table, species string, how figures.Method, resamples int) (figures.Analysis, error) {
	analysis := figures.Analysis{Species: species, Method: how, Birds: len(birds.Of(species))}
	for _, m := range figures.Measures {
		if len(birds.Of(species).Measured(m)) == 0 {
			continue
		}
		figure, err := superstep.Task(ctx, "describe", func(ctx context.Context) (figures.Figure, error) {
			return figures.Describe(ctx, birds, species, m, how, resamples)
		}, superstep.WithKey(string(m)))
		if err != nil {
			return analysis, err
		}
		analysis.Figures = append(analysis.Figures, figure)
	}
	return analysis, nil
}
