// Command demo shows a leader at work: four experts find out how penguins differ, one subjob turns out too complicated and
// is planned again, a critic sends two of them back to work, a person decides what leads the report, and a worker is killed
// with SIGKILL in the middle of it all.
//
//	go run ./examples/research/demo
//
// It needs Go and nothing else. It builds and starts a Temporal server and workers, with their data in a directory of its
// own that it removes again; ports that are taken are not touched. Its exit code is 0 only if one report was published, with
// the figures that the data have, and nothing that had finished was done again.
//
// At a terminal it asks the question of the job; without one, or with YES=1, it answers itself. With OPENAI_API_KEY or
// OPENAI_BASE_URL a model makes the plans (OPENAI_MODEL), which may be others.
package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"superstep.dev/examples/internal/demo"
	"superstep.dev/test/processes/stack"
)

const (
	id   = "penguins"
	goal = "How do the penguins differ?"

	// resamples makes an analysis take seconds, so that it can be interrupted.
	resamples = "400000"
)

func main() {
	os.Exit(demo.Demo{
		Name: "demo-research", Programs: stack.Research, Drain: 2 * time.Second,
		Env: func(dir string) []string {
			return []string{"RESEARCH_DIR=" + storeIn(dir), "RESEARCH_RESAMPLES=" + resamples}
		},
		Scenes: scenes,
	}.Main(os.Args[1:]))
}

// storeIn is where a demo with data in dir publishes its report.
func storeIn(dir string) string { return filepath.Join(dir, "store") }

// researching is the demo while it plays.
type researching struct {
	*demo.Stage
	shown int64 // the last event that was
}

// scenes plays the demo and returns the verdict.
func scenes(ctx context.Context, s *demo.Stage) (verdict string, err error) {
	d := &researching{Stage: s}
	if err := d.submit(ctx); err != nil {
		return "", err
	}
	if err := d.crash(ctx); err != nil {
		return "", err
	}
	if err := d.question(ctx); err != nil {
		return "", err
	}
	return d.report(ctx)
}

// model reports whether a model makes the plans.
func model() bool { return os.Getenv("OPENAI_API_KEY") != "" || os.Getenv("OPENAI_BASE_URL") != "" }
