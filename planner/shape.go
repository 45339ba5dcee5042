package planner

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"superstep.dev/job"
)

// draftOf reads the subjobs of a plan. Whether they make one that can be used is for job.CheckPlan to say.
func draftOf(entries []entry) (job.Draft, error) {
	var draft job.Draft
	for i, e := range entries {
		s, err := e.subJob(i + 1)
		if err != nil {
			return job.Draft{}, err
		}
		draft.SubJobs = append(draft.SubJobs, s)
	}
	return draft, nil
}

// subJob reads one subjob, the position-th of the plan, which is its id when it has no other.
func (e entry) subJob(position int) (job.DraftSubJob, error) {
	s := job.DraftSubJob{ID: e.key}
	o, isObject := e.value.Value.(*hujson.Object)
	if !isObject {
		return s, bad(orPosition(e.key, position), "it is not an object with a goal and an assigned_expert")
	}
	fields := map[string]hujson.Value{}
	for _, m := range o.Members {
		name := nameOf(m)
		if _, twice := fields[name]; twice {
			return s, bad(orPosition(e.key, position), fmt.Sprintf("%q is there twice", name))
		}
		fields[name] = m.Value
	}
	id := strings.TrimSpace(text(fields["id"]))
	if e.key != "" && id != "" && id != e.key {
		return s, bad(e.key, fmt.Sprintf("its id is %q, and its key is another one", id))
	}
	if id == "" {
		id = orPosition(e.key, position)
	}
	s = job.DraftSubJob{
		ID: id, Goal: text(fields["goal"]), Context: text(fields["context"]), CompletionCriteria: text(fields["completion_criteria"]),
		Expert: strings.TrimSpace(text(fields["assigned_expert"])), Thinking: text(fields["thinking"]), OutputSchema: text(fields["output_schema"]),
	}
	var err error
	s.Dependencies, err = ids(id, fields["dependencies"])
	return s, err
}

func orPosition(key string, position int) string {
	if key != "" {
		return key
	}
	return strconv.Itoa(position)
}

// text returns a value as the text that it stands for: a list's elements one a line, an object as JSON, nothing for null
// and for what is not there.
func text(v hujson.Value) string {
	switch t := v.Value.(type) {
	case hujson.Literal:
		if t.Kind() == 'n' {
			return ""
		}
		return t.String()
	case *hujson.Array:
		lines := make([]string, len(t.Elements))
		for i, e := range t.Elements {
			lines[i] = text(e)
		}
		return strings.Join(lines, "\n")
	case *hujson.Object:
		v.Minimize()
		return string(v.Pack())
	}
	return ""
}

// ids returns the ids in a list, or the only one where there is no list.
func ids(subjob string, v hujson.Value) ([]string, error) {
	elements := []hujson.Value{v}
	if list, isList := v.Value.(*hujson.Array); isList {
		elements = list.Elements
	}
	var out []string
	for _, e := range elements {
		switch l, isLiteral := e.Value.(hujson.Literal); {
		case e.Value == nil || isLiteral && l.Kind() == 'n':
		case isLiteral && (l.Kind() == '"' || l.Kind() == '0'):
			if id := strings.TrimSpace(l.String()); id != "" {
				out = append(out, id)
			}
		default:
			return nil, bad(subjob, "its dependencies are not a list of ids")
		}
	}
	return out, nil
}
