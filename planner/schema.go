package planner

import "superstep.dev/job"

// Bounds of an enum in a strict schema: this many values, and this many characters together when there are more than 250.
const (
	maxEnum      = 500
	maxEnumChars = 15_000
)

// object and field are a JSON schema as the API's strict mode demands it: every property is required, no other is
// allowed. Their fields are in the order in which a model is to write: it thinks before it decides. A map would be sorted.
type object[P any] struct {
	Type       string   `json:"type"`
	Properties P        `json:"properties"`
	Required   []string `json:"required"`
	Additional bool     `json:"additionalProperties"`
}

type field struct {
	Type        string   `json:"type"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
}

type list[T any] struct {
	Type  string `json:"type"`
	Items T      `json:"items"`
}

type planFields struct {
	SubJobs list[object[subJobFields]] `json:"subjobs"`
}

type subJobFields struct {
	ID                 field       `json:"id"`
	Thinking           field       `json:"thinking"`
	Goal               field       `json:"goal"`
	Context            field       `json:"context"`
	CompletionCriteria field       `json:"completion_criteria"`
	Dependencies       list[field] `json:"dependencies"`
	Expert             field       `json:"assigned_expert"`
	OutputSchema       field       `json:"output_schema"`
}

// schema is what a plan looks like, with the experts' names as the only ones that may be assigned.
func schema(experts []job.Profile) object[planFields] {
	text := func(description string) field { return field{Type: "string", Description: description} }
	one := object[subJobFields]{Type: "object", Required: []string{
		"id", "thinking", "goal", "context", "completion_criteria", "dependencies", "assigned_expert", "output_schema",
	}}
	one.Properties = subJobFields{
		ID:                 text("Short and unique in this plan."),
		Thinking:           text("In the first person and brief: why it is needed, how to begin, what may go wrong."),
		Goal:               text("What is to be achieved."),
		Context:            text("Everything needed to do it, exact values included."),
		CompletionCriteria: text("How to tell that it is done; measurable."),
		Dependencies:       list[field]{Type: "array", Items: text("The id of a subjob whose output this one needs.")},
		Expert:             field{Type: "string", Description: "The name of an expert.", Enum: names(experts)},
		OutputSchema:       text("What the output must look like, empty when that is free."),
	}
	return object[planFields]{
		Type: "object", Required: []string{"subjobs"},
		Properties: planFields{SubJobs: list[object[subJobFields]]{Type: "array", Items: one}},
	}
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
