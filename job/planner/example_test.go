package planner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"

	"superstep.dev/job"
	"superstep.dev/job/planner"
)

var experts = []job.Profile{
	{Name: "loader", Description: "Loads a CSV file and returns its columns. Needs a path. Does not interpret."},
	{Name: "analyst", Description: "Computes statistics over loaded columns. Does not write prose."},
}

// Jobs whose shape is known need no model: their goals fill the texts of a plan.
func ExampleRules() {
	p := planner.Rules{Jobs: []planner.Rule{{
		Goal: regexp.MustCompile(`^compare (?P<what>.+) in (?P<file>\S+)$`),
		SubJobs: []job.DraftSubJob{
			{ID: "load", Goal: "load {{.Groups.file}}", Expert: "loader"},
			{ID: "compare", Goal: "compare {{.Groups.what}}", Expert: "analyst", Dependencies: []string{"load"}},
		},
	}}}
	draft, err := p.Plan(context.Background(), job.PlanRequest{
		Job: job.Job{ID: "j-1", Goal: "compare bill lengths in penguins.csv"}, Experts: experts, Attempt: 1, MaxSubJobs: 20,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range draft.SubJobs {
		fmt.Println(s.ID, s.Expert, s.Dependencies, s.Goal)
	}
	// Output:
	// load loader [] load penguins.csv
	// compare analyst [load] compare bill lengths
}

// Any server that speaks the chat completions API can plan. This one answers with a plan in a fence, as some models do.
func ExampleNewOpenAI() {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices": [{"message": {"content": "`+"```"+`json\n`+
			`{\"subjobs\": [{\"id\": 1, \"goal\": \"load penguins.csv\", \"assigned_expert\": \"loader\"}]}\n`+"```"+`"},
			"finish_reason": "stop"}], "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}}`)
	}))
	defer model.Close()

	// Without BaseURL and APIKey it is OPENAI_BASE_URL and OPENAI_API_KEY.
	p, err := planner.NewOpenAI(planner.Config{Model: "a-model", BaseURL: model.URL + "/v1", InputPrice: 2_500_000, OutputPrice: 10_000_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	draft, err := p.Plan(context.Background(), job.PlanRequest{
		Job: job.Job{ID: "j-1", Goal: "load penguins.csv"}, Experts: experts, Attempt: 1, MaxSubJobs: 20,
	})
	fmt.Println(draft.SubJobs[0].Expert, draft.SubJobs[0].Goal, err)
	fmt.Println(draft.Usage.Tokens, "tokens,", draft.Usage.MicroUSD, "millionths of a dollar")
	// Output:
	// loader load penguins.csv <nil>
	// 1000 tokens, 3250 millionths of a dollar
}

// An error says whether asking again helps, when, and what to do.
func ExampleError() {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		http.Error(w, `{"error": {"message": "Rate limit reached"}}`, http.StatusTooManyRequests)
	}))
	defer busy.Close()
	p, err := planner.NewOpenAI(planner.Config{Model: "a-model", BaseURL: busy.URL + "/v1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = p.Plan(context.Background(), job.PlanRequest{Job: job.Job{ID: "j-1", Goal: "load"}, Experts: experts, MaxSubJobs: 20})
	if e, is := errors.AsType[*planner.Error](err); is {
		fmt.Println(e.Status, e.Problem, e.NextRetryDelay(), e.Permanent())
	}
	// Output:
	// 429 Rate limit reached 20s false
}
