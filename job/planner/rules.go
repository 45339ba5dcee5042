package planner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"superstep.dev/job"
)

// Rules is a planner that follows rules: the first one that fits plans, and the same request always gets the same plan. It
// costs nothing. When none fits, Plan returns a final [*Error]; a last rule with neither Goal nor When fits everything.
type Rules struct {
	Jobs []Rule
	// TooComplicated are for subjobs that an expert found too complicated.
	TooComplicated []Rule
}

// Rule says how to plan what fits it.
type Rule struct {
	// Goal, when set, must match the goal of what is to be planned, and When must be true of the request.
	Goal *regexp.Regexp
	When func(job.PlanRequest) bool
	// Expert, when set, must be who found the subjob too complicated. It has no meaning in Rules.Jobs.
	Expert string
	// SubJobs are the plan. Their texts are templates of text/template over the [job.PlanRequest], with .Goal and .Context of
	// what is to be planned, and .Groups with what Goal's groups matched, by name or else by number: "{{.Goal}}",
	// "{{.Groups.species}}", "{{index .Groups `1`}}".
	SubJobs []job.DraftSubJob
	// Plan makes the plan when SubJobs are not enough.
	Plan func(job.PlanRequest) ([]job.DraftSubJob, error)
}

var _ job.Planner = Rules{}

// Plan follows the first rule that fits. An error of the rule itself is a final [*Error], because it comes again; a
// *job.BadPlanError is returned as it is.
func (r Rules) Plan(_ context.Context, req job.PlanRequest) (job.Draft, error) {
	d := ruleData{PlanRequest: req, Goal: req.Job.Goal, Context: req.Job.Context}
	rules, expert := r.Jobs, ""
	if s := req.SubJob; s != nil {
		rules, expert, d.Goal, d.Context = r.TooComplicated, s.Expert, s.Goal, s.Context
	}
	for _, rule := range rules {
		if !rule.fits(d, expert) {
			continue
		}
		subjobs, err := rule.plan(d)
		return job.Draft{SubJobs: subjobs}, d.failed(err)
	}
	return job.Draft{}, d.failed(fmt.Errorf("no rule fits the goal %q: add one to the planner's Rules", clip(d.Goal, 200)))
}

// ruleData is what the templates of a rule can name.
type ruleData struct {
	job.PlanRequest
	Goal, Context string
	Groups        map[string]string
}

func (d ruleData) failed(err error) error {
	if _, is := errors.AsType[*job.BadPlanError](err); is || err == nil {
		return err
	}
	e := &Error{Job: d.Job.ID, Planner: "the rules", Problem: err.Error(), Final: true, cause: err}
	if d.SubJob != nil {
		e.SubJob = d.SubJob.ID
	}
	return e
}

func (r Rule) fits(d ruleData, expert string) bool {
	return (r.Goal == nil || r.Goal.MatchString(d.Goal)) &&
		(r.When == nil || r.When(d.PlanRequest)) &&
		(r.Expert == "" || r.Expert == expert)
}

func (r Rule) plan(d ruleData) ([]job.DraftSubJob, error) {
	if r.Plan != nil {
		return r.Plan(d.PlanRequest)
	}
	d.Groups = r.groups(d.Goal)
	var out []job.DraftSubJob
	for _, s := range r.SubJobs {
		for _, field := range []*string{&s.Goal, &s.Context, &s.CompletionCriteria, &s.Expert, &s.Thinking, &s.OutputSchema} {
			filled, err := fill(*field, d)
			if err != nil {
				return nil, fmt.Errorf("subjob %q of its rule: %w", s.ID, err)
			}
			*field = filled
		}
		out = append(out, s)
	}
	return out, nil
}

func (r Rule) groups(goal string) map[string]string {
	out := map[string]string{}
	if r.Goal == nil {
		return out
	}
	for i, matched := range r.Goal.FindStringSubmatch(goal) {
		name := r.Goal.SubexpNames()[i]
		if name == "" {
			name = fmt.Sprint(i)
		}
		out[name] = matched
	}
	return out
}

// fill fills a template. A group that does not exist is an error, not "<no value>".
func fill(text string, d ruleData) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New("rule").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, d)
	return b.String(), err
}
