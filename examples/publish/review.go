package publish

import (
	"context"
	"encoding/json"
	"strings"

	"superstep.dev"
	"superstep.dev/examples/publish/site"
)

// The verdicts of a [Review].
const (
	VerdictPublish = "publish"
	VerdictRevise  = "revise"
	VerdictDrop    = "drop"
)

// Review is the answer to the question whether an article is published.
type Review struct {
	Verdict string `json:"verdict"`
	// Headings are the sections to revise, all of them when there is none; Note says how.
	Headings []string `json:"headings,omitempty"`
	Note     string   `json:"note,omitempty"`
}

// reviewSchema refuses what nobody can follow, such as a heading that the article does not have, when the answer is given
// and not when the node runs.
func reviewSchema(s State) string {
	headings, _ := json.Marshal(s.Headings.Get()) // strings always encode
	return `{
		"type": "object",
		"properties": {
			"verdict": {"enum": ["publish", "revise", "drop"]},
			"headings": {"type": "array", "items": {"enum": ` + string(headings) + `}},
			"note": {"type": "string", "maxLength": 1000}
		},
		"required": ["verdict"],
		"additionalProperties": false
	}`
}

// asked is what the reviewer is shown.
type asked struct {
	Question string       `json:"question"`
	Article  site.Article `json:"article"`
}

// review asks, and goes where the answer says.
func review(ctx context.Context, s State) (superstep.Command[State], error) {
	question := asked{"Publish this article, revise sections of it, or drop it?", article(s)}
	r, err := superstep.Interrupt[Review](ctx, question, superstep.WithAnswerSchema(reviewSchema(s)))
	if err != nil {
		return superstep.Command[State]{}, err
	}
	switch r.Verdict {
	case VerdictPublish:
		return superstep.Command[State]{Goto: superstep.To("publish")}, nil
	case VerdictRevise:
		if len(r.Headings) == 0 {
			r.Headings = s.Headings.Get()
		}
		return superstep.Command[State]{Goto: sections(s, r.Headings, r.Note)}, nil
	}
	return superstep.Command[State]{Goto: superstep.To(superstep.End)}, nil
}

// article puts the sections together in the order of their headings.
func article(s State) site.Article {
	texts := s.Texts.Get()
	var body strings.Builder
	for _, h := range s.Headings.Get() {
		body.WriteString("## " + h + "\n\n" + texts[h] + "\n\n")
	}
	return site.Article{Title: s.Title.Get(), Body: strings.TrimSpace(body.String())}
}
