package research

import (
	"bytes"
	"context"
	"errors"

	"superstep.dev"
	"superstep.dev/examples/research/figures"
	"superstep.dev/examples/research/store"
	"superstep.dev/job"
	"superstep.dev/job/leader"
)

// loaded is what the loader's task remembers.
type loaded struct {
	Loaded
	URI string `json:"uri"`
}

// loader checks a table and keeps a copy that no longer changes.
func loader(s *store.Store) leader.Expert {
	return leader.NewExpert("loader", "Reads a table of birds (CSV) and checks every line. Needs nothing but the job's "+
		"data. Returns how many birds of which species there are, which lines are incomplete, and a reference to the checked "+
		"table. Computes nothing and writes no text.",
		free(func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			got, err := superstep.Task(ctx, "load", func(context.Context) (loaded, error) { return load(s, source(a)) })
			var bad *figures.TableError
			if errors.As(err, &bad) {
				return job.WorkflowMessage{Status: job.ExecutionError, Evaluation: bad.Error()}, nil
			}
			if err != nil {
				return job.WorkflowMessage{}, err
			}
			m, err := message(job.Success, got.Loaded)
			m.Artifacts = []job.Artifact{{Name: birdsArtifact, URI: got.URI, Kind: "text/csv"}}
			return m, err
		}))
}

// source is the data of a job: its first artifact, or the data set that comes with the example.
func source(a job.Assignment) (uri string) {
	if len(a.Artifacts) > 0 {
		return a.Artifacts[0].URI
	}
	return store.Sample
}

func load(s *store.Store, uri string) (got loaded, err error) {
	text, err := s.Read(uri)
	if err != nil {
		return got, err
	}
	birds, problems, err := figures.ReadTable(bytes.NewReader(text))
	if err != nil {
		return got, superstep.Permanent(err)
	}
	got.Loaded = Loaded{Birds: len(birds), Species: birds.Count(), Problems: problems[:min(len(problems), MaxProblems)],
		Incomplete: len(problems)}
	got.URI, err = s.PutTable(text)
	return got, err
}
