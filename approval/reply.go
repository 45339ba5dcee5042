package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Reply is what one person answers: the value of the answer to an approval's question.
type Reply struct {
	Verdict Verdict `json:"verdict"`
	// Params are the parameters proposed, with VerdictEdit only.
	Params json.RawMessage `json:"params,omitempty"`
	// Reason is for the record: at most 1,000 bytes.
	Reason string `json:"reason,omitempty"`
}

// ReplySchema is the JSON schema of a [Reply].
var ReplySchema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["verdict"],"properties":{` +
	`"verdict":{"type":"string","enum":["approve","reject","edit"],"description":"approve: do exactly this; reject: do ` +
	`not; edit: propose other parameters, which are asked about anew"},"params":{"description":"with edit: the ` +
	`parameters proposed"},"reason":{"type":"string","maxLength":1000,"description":"for the record"}}}`)

// maxReply is the most bytes that a reply may have as JSON: its parameters and its reason, every byte of which may be
// escaped.
const maxReply = MaxParams + 6*MaxReason + 100

// ParseReply reads the value of an answer strictly: a field that it does not know is an error. The error is an
// [*InvalidError]. It says nothing about whether the reply counts, which a [Gate] does.
func ParseReply(value json.RawMessage) (Reply, error) {
	if len(value) > maxReply {
		return Reply{}, invalidReply("", fmt.Sprintf("it has at most %d bytes, this one has %d", maxReply, len(value)))
	}
	if !json.Valid(value) {
		return Reply{}, invalidReply("", "it is not one JSON value")
	}
	if err := checkNames(json.NewDecoder(bytes.NewReader(value)), maxDepth); err != nil {
		return Reply{}, invalidReply("", err.Error())
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	var r Reply
	if err := dec.Decode(&r); err != nil {
		return Reply{}, invalidReply("", `it is {"verdict": "approve", "reject" or "edit", "params": ..., "reason": "..."}`)
	}
	return r, r.Check()
}

// Check returns an [*InvalidError] when nobody can say that: a verdict that people cannot give, parameters without
// VerdictEdit or VerdictEdit without them, a reason that is too long, parameters that [Action.Check] would refuse.
func (r Reply) Check() error {
	verdict := wordProblem(r.Verdict, VerdictApprove, VerdictReject, VerdictEdit)
	switch {
	case verdict != "":
		return invalidReply("verdict", verdict)
	case r.Verdict == VerdictEdit && len(r.Params) == 0:
		return invalidReply("params", "say which parameters to go on with")
	case r.Verdict != VerdictEdit && len(r.Params) > 0:
		return invalidReply("params", "other parameters are proposed with edit only")
	case len(r.Reason) > MaxReason || !utf8.ValidString(r.Reason):
		return invalidReply("reason", fmt.Sprintf("it is valid UTF-8 of at most %d bytes", MaxReason))
	}
	if problem := paramsProblem(r.Params); problem != "" {
		return invalidReply("params", problem)
	}
	return nil
}

func invalidReply(field, problem string) error {
	return &InvalidError{Of: "reply", Field: field, Problem: problem}
}

// Proposed returns the parameters that an edit proposes in the form in which they are used: hashed, stored, shown and
// masked. That is the tool's own form, or where nobody knows the tool, with names spelled as in the parameters that were
// asked about and in Action.Secrets: a tool in Go reads {"CARD": ...} into a field "card". The error is an
// [*InvalidError] that says why they do not fit. Other replies propose nothing.
func (c ReplyCheck) Proposed() (json.RawMessage, error) {
	switch {
	case c.Reply.Verdict != VerdictEdit:
		return nil, nil
	case c.Canonical == nil:
		return respelled(c.Reply.Params, c.Action.Params, c.Action.Secrets), nil
	}
	params, err := c.Canonical(c.Reply.Params)
	problem := ""
	if err != nil {
		problem = err.Error()
	} else {
		problem = paramsProblem(params)
	}
	if problem != "" {
		return nil, invalidReply("params", problem)
	}
	return params, nil
}

// respelled returns params with the names of like and of the secrets where theirs differ by case only.
func respelled(params, like json.RawMessage, secrets []string) json.RawMessage {
	value, err := decode(params)
	if err != nil {
		return params
	}
	model, err := decode(orNull(like))
	if err != nil {
		model = nil
	}
	var hidden [][]string
	for _, secret := range secrets {
		if names, err := splitPointer(secret); err == nil {
			hidden = append(hidden, names)
		}
	}
	value, changed := spelled(value, model, hidden)
	if !changed {
		return params
	}
	return encode(value)
}

// spelled is a value with the names of model and of the secrets from here on, and whether that changed any.
func spelled(value, model any, secrets [][]string) (out any, changed bool) {
	switch value := value.(type) {
	case map[string]any:
		object, _ := model.(map[string]any)
		out := make(map[string]any, len(value))
		for _, name := range sortedNames(value) {
			as := nameFor(name, object, secrets)
			inner, respelled := spelled(value[name], object[as], below(secrets, as))
			out[as] = inner
			changed = changed || respelled || as != name
		}
		return out, changed
	case []any:
		list, _ := model.([]any)
		for i := range value {
			var like any
			if len(list) > 0 {
				like = list[min(i, len(list)-1)]
			}
			inner, respelled := spelled(value[i], like, below(secrets, indexName(i)))
			value[i], changed = inner, changed || respelled
		}
	}
	return value, changed
}

// nameFor is how the model or a secret spells a name.
func nameFor(name string, model map[string]any, secrets [][]string) string {
	if _, same := model[name]; same {
		return name
	}
	known := sortedNames(model)
	for _, names := range secrets {
		if len(names) > 0 {
			known = append(known, names[0])
		}
	}
	if at := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); at >= 0 {
		return known[at]
	}
	return name
}
