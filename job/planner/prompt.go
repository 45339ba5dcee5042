package planner

import (
	"crypto/sha256"
	_ "embed" // what a model is told
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
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
