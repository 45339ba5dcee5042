package planner

import (
	"context"
	"crypto/sha256"
	_ "embed" // what a model is told
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"unicode/utf8"

	"superstep.dev/job"
)

//go:embed instructions.md
var instructionsText string

// instructions are the same for every plan, so that an endpoint can keep them.
var instructions = strings.TrimSpace(instructionsText)

// Bounds of what is shown of an attempt that found its subjob too complicated, in bytes: what it had achieved, and all its
// inputs together.
const (
	maxReported = 16 << 10
	maxInputs   = 64 << 10
)

// section is a part of the message with material that others wrote.
type section struct{ name, text string }

// task is the message that says what to plan.
func task(req job.PlanRequest) string {
	return fenced(material(req)) + fmt.Sprintf("Plan this now, in 1 to %d subjobs.\n", max(req.MaxSubJobs, 1))
}

func material(req job.PlanRequest) []section {
	var out []section
	add := func(name, format string, values ...any) {
		if text := strings.TrimSpace(fmt.Sprintf(format, values...)); text != "" {
			out = append(out, section{name, text})
		}
	}
	add("task", "%s", req.Job.Goal)
	add("context", "%s", req.Job.Context)
	add("artifacts", "%s", artifacts(req.Job.Artifacts))
	for _, e := range req.Experts {
		add("expert", "name: %s\n%s", e.Name, clip(e.Description, job.MaxNote))
	}
	if s := req.SubJob; s != nil {
		add("subjob", "goal: %s\nassigned_expert: %s\ncompletion_criteria: %s\ncontext: %s\noutput_schema: %s",
			s.Goal, s.Expert, s.CompletionCriteria, s.Context, s.OutputSchema)
	}
	if r := req.Report; r != nil {
		add("report", "status: %s\nevaluation: %s\nlesson: %s\nachieved so far: %s%s",
			r.Status, r.Evaluation, r.Lesson, clip(r.Output, maxReported), artifacts(r.Artifacts))
	}
	for _, in := range req.Inputs {
		add("input", "goal: %s\nmade by: %s%s\n%s", in.Goal, in.Expert, artifacts(in.Artifacts), clip(in.Text, maxInputs/len(req.Inputs)))
	}
	add("correction", "%s", req.Lesson)
	return out
}

func artifacts(all []job.Artifact) string {
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintf(&b, "\nartifact %s: %s %s", a.Name, a.URI, a.Kind)
	}
	return b.String()
}

// fenced sets sections apart by a key that no text in them can hold, because it is the hash of them all.
func fenced(sections []section) string {
	sum := sha256.New()
	for _, s := range sections {
		fmt.Fprintf(sum, "%s %d\n%s", s.name, len(s.text), s.text)
	}
	key := hex.EncodeToString(sum.Sum(nil)[:8])
	var b strings.Builder
	fmt.Fprintf(&b, "key: %s\n", key)
	for _, s := range sections {
		fmt.Fprintf(&b, "=== BEGIN %s %s\n%s\n=== END %s %s\n", s.name, key, s.text, s.name, key)
	}
	return b.String()
}

// clip returns text, or its first and last parts when it is longer than limit bytes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := limit*3/4, len(text)-limit/4
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", text[:head], tail-head, text[tail:])
}

// Bounds of an enum in a strict schema: this many values, and this many characters together when there are more than 250.
const (
	maxEnum      = 500
	maxEnumChars = 15_000
)

// planSchema is a plan's JSON schema as the API's strict mode demands it: every property is required, no other is allowed. The
// properties are in the order in which a model is to write: it thinks before it decides. The schema of an expert goes in for %s.
//
//go:embed schema.tmpl
var planSchema string

// schema is what a plan looks like, with the experts' names as the only ones that may be assigned.
func schema(experts []job.Profile) json.RawMessage {
	expert, err := json.Marshal(struct {
		Type        string   `json:"type"`
		Description string   `json:"description"`
		Enum        []string `json:"enum,omitempty"`
	}{"string", "The name of an expert.", names(experts)})
	if err != nil {
		panic(err) // texts always encode
	}
	return fmt.Appendf(nil, planSchema, expert)
}

// names are the experts', or none when they are more than the API takes as an enum: a wrong one is then found by the check
// of the plan.
func names(experts []job.Profile) []string {
	var out []string
	chars := 0
	for _, e := range experts {
		out = append(out, e.Name)
		chars += len(e.Name)
	}
	if len(out) > maxEnum || (len(out) > 250 && chars > maxEnumChars) {
		return nil
	}
	return out
}

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
