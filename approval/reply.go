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
// masked. That is the tool's own form. Where nobody knows the tool they are taken as they are, unless they are null, a name of the
// parameters that were asked about is missing, or a name there or in Action.Secrets is spelled in other letter case: a tool in Go
// would read zero for what is missing, and {"CARD": ...} into a field "card". The error is an [*InvalidError] that says why they do
// not fit. Other replies propose nothing.
func (c ReplyCheck) Proposed() (json.RawMessage, error) {
	switch {
	case c.Reply.Verdict != VerdictEdit:
		return nil, nil
	case c.Canonical == nil:
		if problem := unlike(c.Reply.Params, c.Action.Params, c.Action.Secrets); problem != "" {
			return nil, invalidReply("params", problem)
		}
		return c.Reply.Params, nil
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

// unlike says why params cannot stand in the place of like, empty for nothing.
func unlike(params, like json.RawMessage, secrets []string) string {
	value, err := decode(params)
	if err != nil {
		return "" // Reply.Check says so
	}
	model, err := decode(orNull(like))
	if err != nil {
		model = nil
	}
	if value == nil && model != nil {
		return "null is nothing to go on with: give all parameters"
	}
	var hidden [][]string
	for _, secret := range secrets {
		if names, err := splitPointer(secret); err == nil {
			hidden = append(hidden, names)
		}
	}
	if name := misspelled(value, model, hidden); name != "" {
		return fmt.Sprintf("the name %s is spelled in other letter case", quote(name))
	}
	given, isObject := value.(map[string]any)
	asked, _ := model.(map[string]any)
	for _, name := range sortedNames(asked) {
		if _, has := given[name]; isObject && !has {
			return fmt.Sprintf("%s is missing: give all parameters, with null for one that is to be empty", quote(name))
		}
	}
	return ""
}

// misspelled returns a name of model, or of the secrets from here on, that value spells in other letter case; empty for none.
func misspelled(value, model any, secrets [][]string) string {
	switch value := value.(type) {
	case map[string]any:
		object, _ := model.(map[string]any)
		for _, name := range sortedNames(value) {
			if as := nameFor(name, object, secrets); as != name {
				return as
			}
			if found := misspelled(value[name], object[name], below(secrets, name)); found != "" {
				return found
			}
		}
	case []any:
		list, _ := model.([]any)
		for i := range value {
			var like any
			if len(list) > 0 {
				like = list[min(i, len(list)-1)]
			}
			if found := misspelled(value[i], like, below(secrets, indexName(i))); found != "" {
				return found
			}
		}
	}
	return ""
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
