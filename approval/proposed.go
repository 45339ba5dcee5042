package approval

import (
	"encoding/json"
	"slices"
	"strings"
)

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
	s := speller{}
	for _, secret := range secrets {
		if names, err := splitPointer(secret); err == nil {
			s.secrets = append(s.secrets, names)
		}
	}
	if value = s.spell(value, model); !s.changed {
		return params
	}
	return encode(value)
}

type speller struct {
	secrets [][]string // from here on
	changed bool
}

func (s *speller) spell(value, model any) any {
	switch value := value.(type) {
	case map[string]any:
		object, _ := model.(map[string]any)
		out := make(map[string]any, len(value))
		for _, name := range sortedNames(value) {
			as := s.nameFor(name, object)
			out[as] = s.inside(as).take(s, value[name], object[as])
			s.changed = s.changed || as != name
		}
		return out
	case []any:
		list, _ := model.([]any)
		for i := range value {
			var like any
			if len(list) > 0 {
				like = list[min(i, len(list)-1)]
			}
			value[i] = s.inside(indexName(i)).take(s, value[i], like)
		}
	}
	return value
}

// nameFor is how the model or a secret spells a name.
func (s *speller) nameFor(name string, model map[string]any) string {
	if _, same := model[name]; same {
		return name
	}
	known := sortedNames(model)
	for _, names := range s.secrets {
		if len(names) > 0 {
			known = append(known, names[0])
		}
	}
	if at := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); at >= 0 {
		return known[at]
	}
	return name
}

func (s *speller) inside(name string) *speller { return &speller{secrets: below(s.secrets, name)} }

// take spells a value within, and tells the one around it of a change.
func (s *speller) take(around *speller, value, model any) any {
	value = s.spell(value, model)
	around.changed = around.changed || s.changed
	return value
}
