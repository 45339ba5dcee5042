package research

import (
	"cmp"
	"fmt"
	"os"
	"strconv"

	"superstep.dev/examples/research/figures"
	"superstep.dev/examples/research/store"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/job/planner"
)

// usualModel plans when there is a key and OPENAI_MODEL does not say which.
const usualModel = "gpt-4.1-mini"

// FromEnv returns the leader as the environment says: RESEARCH_DIR is the directory of its store (.research), which its
// workers share, and RESEARCH_RESAMPLES how many samples intervals are of (2000). With OPENAI_API_KEY or OPENAI_BASE_URL
// the model OPENAI_MODEL (gpt-4.1-mini) makes the plans, else [Rules] do. It ends the process with one line when one of
// them is no use: it is for mains.
func FromEnv() *leader.Leader {
	l, err := fromEnv(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "research:", err)
		os.Exit(2)
	}
	return l
}

func fromEnv(get func(string) string) (*leader.Leader, error) {
	resamples := figures.DefaultResamples
	if text := get("RESEARCH_RESAMPLES"); text != "" {
		var err error
		if resamples, err = strconv.Atoi(text); err != nil || resamples < 1 || resamples > figures.MaxResamples {
			return nil, fmt.Errorf("RESEARCH_RESAMPLES %q: want a number from 1 to %d", text, figures.MaxResamples)
		}
	}
	p, err := plannerFromEnv(get)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(cmp.Or(get("RESEARCH_DIR"), ".research"))
	if err != nil {
		return nil, fmt.Errorf("RESEARCH_DIR: %w", err)
	}
	return Leader(p, s, resamples)
}

// plannerFromEnv is a model when one is configured.
func plannerFromEnv(get func(string) string) (job.Planner, error) {
	key, url := get("OPENAI_API_KEY"), get("OPENAI_BASE_URL")
	if key == "" && url == "" {
		return Rules(), nil
	}
	return planner.NewOpenAI(planner.Config{Model: cmp.Or(get("OPENAI_MODEL"), usualModel), APIKey: key, BaseURL: url})
}
