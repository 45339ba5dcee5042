package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"
	"superstep.dev/job"
)

// maxParsed bounds the work of parsing an answer, in times its length: blocks are parsed again for those inside them.
const maxParsed = 4

// extract finds the plan in what a model wrote: JSON, perhaps with comments, trailing commas and raw line breaks, perhaps
// fenced, tagged, or with text around it. Of several plans the last one counts that check lets pass, because models
// correct themselves. Every error is a *job.BadPlanError.
func extract(text string, check func(job.Draft) error) (job.Draft, error) {
	var found *job.Draft
	var unusable, broken error // what is wrong with the last plan, and with the first JSON
	effort := maxParsed * (len(text) + 1024)
	blocks(clean(text), func(block string) bool {
		if effort < 0 || !strings.Contains(block, `"goal"`) && !strings.Contains(block, `"subjobs"`) {
			return false
		}
		effort -= len(block)
		v, err := hujson.Parse([]byte(escaped(block)))
		if err != nil {
			if broken == nil { // the first is the outermost
				broken = bad("", "its JSON has a mistake: "+strings.TrimPrefix(err.Error(), "hujson: "))
			}
			return false
		}
		entries, isPlan, err := entriesOf(v)
		if !isPlan {
			return false
		}
		var draft job.Draft
		if err == nil {
			draft, err = draftOf(entries)
		}
		if err == nil {
			err = check(draft)
		}
		if err != nil {
			unusable = err
		} else {
			found = &draft
		}
		return true
	})
	switch {
	case found != nil:
		return *found, nil
	case strings.TrimSpace(text) == "":
		return job.Draft{}, bad("", "the answer is empty: answer with one JSON object")
	case !strings.Contains(text, "{"):
		return job.Draft{}, bad("", "the answer is no JSON: answer with one JSON object, and nothing else")
	case unusable != nil:
		return job.Draft{}, unusable
	case broken != nil:
		return job.Draft{}, broken
	}
	return job.Draft{}, bad("", `no complete JSON object with "subjobs" was found: a bracket or a quote is missing, or the object is`)
}

// bad says what is wrong with an answer. What it quotes is bounded: the text is kept, and the model gets it.
func bad(subjob, problem string) error {
	return &job.BadPlanError{SubJob: clip(subjob, 2*job.MaxID), Problem: clip(problem, job.MaxNote/2)}
}

// clean drops what is invisible and no JSON: control characters, byte order marks, broken UTF-8.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if (unicode.IsControl(r) && r != '\n' && r != '\t') || r == '\uFEFF' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// entry is a subjob as it was found, with the key it was found under: "" in a list.
type entry struct {
	key   string
	value hujson.Value
}

// entriesOf returns the subjobs of a plan in one of its shapes: an object with "subjobs", which are a list or an object by
// id, or either of these alone. A value that has none of the shapes is no plan, and no error.
func entriesOf(v hujson.Value) (entries []entry, isPlan bool, err error) {
	if o, isObject := v.Value.(*hujson.Object); isObject {
		for _, m := range o.Members {
			if nameOf(m) != "subjobs" {
				continue
			}
			if isPlan {
				return nil, true, bad("", `"subjobs" is there twice`)
			}
			isPlan = true
			if entries, err = listed(m.Value); err != nil {
				return nil, true, err
			}
		}
		if isPlan {
			return entries, true, nil
		}
	}
	entries, err = listed(v)
	if err != nil || len(entries) == 0 {
		return nil, false, nil
	}
	if slices.ContainsFunc(entries, func(e entry) bool { return !hasGoal(e.value) }) {
		return nil, false, nil
	}
	return entries, true, nil
}

// listed returns the elements of a list, or the members of an object with their names.
func listed(v hujson.Value) ([]entry, error) {
	var out []entry
	switch t := v.Value.(type) {
	case *hujson.Array:
		for _, e := range t.Elements {
			out = append(out, entry{value: e})
		}
	case *hujson.Object:
		for _, m := range t.Members {
			out = append(out, entry{key: nameOf(m), value: m.Value})
		}
	default:
		return nil, bad("", `"subjobs" is neither a list nor an object`)
	}
	return out, nil
}

func hasGoal(v hujson.Value) bool {
	o, isObject := v.Value.(*hujson.Object)
	return isObject && slices.ContainsFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(m) == "goal" })
}

func nameOf(m hujson.ObjectMember) string {
	return strings.TrimSpace(m.Name.Value.(hujson.Literal).String())
}

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
		return s, bad(cmp.Or(e.key, strconv.Itoa(position)), "it is not an object with a goal and an assigned_expert")
	}
	fields := map[string]hujson.Value{}
	for _, m := range o.Members {
		name := nameOf(m)
		if _, twice := fields[name]; twice {
			return s, bad(cmp.Or(e.key, strconv.Itoa(position)), fmt.Sprintf("%q is there twice", name))
		}
		fields[name] = m.Value
	}
	id := strings.TrimSpace(text(fields["id"]))
	if e.key != "" && id != "" && id != e.key {
		return s, bad(e.key, fmt.Sprintf("its id is %q, and its key is another one", id))
	}
	if id == "" {
		id = cmp.Or(e.key, strconv.Itoa(position))
	}
	s = job.DraftSubJob{
		ID: id, Goal: text(fields["goal"]), Context: text(fields["context"]), CompletionCriteria: text(fields["completion_criteria"]),
		Expert: strings.TrimSpace(text(fields["assigned_expert"])), Thinking: text(fields["thinking"]), OutputSchema: text(fields["output_schema"]),
	}
	var err error
	s.Dependencies, err = ids(id, fields["dependencies"])
	return s, err
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

// maxDepth bounds how deeply the JSON in an answer is nested: a plan needs four levels, an output schema some more.
const maxDepth = 64

// blocks calls yield for every {…} or […] in text whose brackets match, outer ones first. Those inside a block are visited
// too, unless yield returns true: it took the block. A bracket without an end costs a look at all that follows, so the work
// is bounded: whatever text is, it is gone over 64 times at most.
func blocks(text string, yield func(block string) (taken bool)) {
	effort := 64 * (len(text) + 1024)
	for i := 0; i < len(text) && effort > 0; i++ {
		if text[i] != '{' && text[i] != '[' {
			continue
		}
		n, read := matching(text[i:])
		effort -= read
		if n > 0 && yield(text[i:i+n]) {
			i += n - 1
		}
	}
}

// matching returns the length of the value that begins text, 0 when it has no end, and how much was read to find out.
func matching(text string) (n, read int) {
	open := make([]byte, 0, maxDepth) // does not escape
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{', '[':
			if len(open) == maxDepth {
				return 0, i
			}
			open = append(open, c+2) // the closing bracket, in ASCII
		case '}', ']':
			if open[len(open)-1] != c {
				return 0, i
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1, i + 1
			}
		case '"':
			i += quoted(text[i:]) - 1
		case '/':
			i += comment(text[i:])
		}
	}
	return 0, len(text)
}

// quoted returns the length of the string that begins text, its quotes included.
func quoted(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// comment returns how much of the comment that begins text follows its first character, 0 when there is none.
func comment(text string) int {
	end := -1
	switch {
	case strings.HasPrefix(text, "//"):
		end = strings.IndexByte(text, '\n')
	case strings.HasPrefix(text, "/*"):
		if end = strings.Index(text[2:], "*/"); end >= 0 {
			end += len("/**/") - 1
		}
	default:
		return 0
	}
	if end < 0 {
		return len(text) - 1
	}
	return end
}

// escaped returns block with the line breaks and tabs inside its strings as JSON wants them: models often write them as
// they are.
func escaped(block string) string {
	var b strings.Builder
	for i := 0; i < len(block); {
		n := 1
		switch block[i] {
		case '"':
			n = quoted(block[i:])
			b.WriteString(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(block[i : i+n]))
			i += n
			continue
		case '/':
			n += comment(block[i:])
		}
		b.WriteString(block[i : i+n])
		i += n
	}
	return b.String()
}
