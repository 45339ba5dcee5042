package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"superstep.dev/test/conformance/trace"
)

// stored is a case as it stands in its file.
type stored struct {
	trace.Text
	name    string
	actions []any
	expect  []any
}

func decodeStored(t trace.Text) (*stored, error) {
	v, err := trace.Decode(t.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Place(), err)
	}
	doc, _ := v.(map[string]any)
	c := &stored{Text: t}
	c.name, _ = doc["name"].(string)
	c.actions, _ = doc["actions"].([]any)
	c.expect, _ = doc["expect"].([]any)
	if c.name == "" || c.actions == nil || c.expect == nil {
		return nil, fmt.Errorf("%s is no case: it needs a name, actions and expected results", t.Place())
	}
	return c, nil
}

// outcome is what became of a case.
type outcome struct {
	Case  string `json:"case"`
	Place string `json:"place"`
	// Moved are the actions whose answers are others now.
	Moved []moved `json:"moved,omitempty"`
	// Unstable says that LangGraph's answer is now this, now that. Such a case counts as moved when it never answered what
	// is stored.
	Unstable bool `json:"unstable,omitempty"`
	// Failure is why the case could not be recorded.
	Failure string `json:"failure,omitempty"`

	expect []any
}

// moved is an action whose answer is another now.
type moved struct {
	// Index is the action's place, Action what it is.
	Index  int    `json:"index"`
	Action string `json:"action"`
	// Parts are the parts of the result that moved, such as state.next.
	Parts []string `json:"parts"`
	// Path, Stored and Now are the first difference. A side that is not there is absent.
	Path   string          `json:"path"`
	Stored json.RawMessage `json:"stored,omitempty"`
	Now    json.RawMessage `json:"now,omitempty"`

	first string
}

// record asks LangGraph for a case anew. An answer that differs is asked for again, to tell what moved from what
// LangGraph answers differently each time.
func (c *stored) record(ctx context.Context, p *pool) *outcome {
	o := &outcome{Case: c.name, Place: c.Place()}
	var first *recording
	for range recordings {
		r, err := p.record(ctx, request{Case: json.RawMessage(c.Bytes)})
		switch {
		case err != nil:
			o.Failure = err.Error()
			return o
		case same(c.expect, r.Expect):
			o.Unstable = first != nil
			return o
		case first == nil:
			first = r
		case !same(first.Expect, r.Expect):
			o.Unstable = true
		}
	}
	o.expect = first.Expect
	o.Moved = c.moves(first.Expect)
	return o
}

// same reports whether two lists of results are the same trace.
func same(a, b []any) bool { return trace.Compare("expect", inOrder(a), inOrder(b)) == nil }

func inOrder(results []any) []any {
	out := make([]any, len(results))
	for i := range results {
		out[i] = trace.InOrder(results[i])
	}
	return out
}

// moves are the actions whose answers differ from what is stored.
func (c *stored) moves(now []any) []moved {
	byAction := map[int]*moved{}
	for d := range trace.Differences("expect", inOrder(c.expect), inOrder(now)) {
		i, part := placeOf(d)
		m := byAction[i]
		if m == nil {
			m = &moved{Index: i, Path: d.Path, Stored: side(d.Want), Now: side(d.Got), first: d.String()}
			if i < len(c.actions) {
				m.Action = kindOf(c.actions[i])
			}
			byAction[i] = m
		}
		if !slices.Contains(m.Parts, part) {
			m.Parts = append(m.Parts, part)
		}
	}
	var out []moved
	for _, i := range slices.Sorted(maps.Keys(byAction)) {
		slices.Sort(byAction[i].Parts)
		out = append(out, *byAction[i])
	}
	return out
}

func side(v any) json.RawMessage {
	if _, ok := v.(trace.Absent); ok {
		return nil
	}
	return trace.Encode(v)
}

// placePattern takes the path of a difference apart: which result, which member of it, and what follows.
var placePattern = regexp.MustCompile(`^expect\[(\d+)\](?:\.(\w+))?(.*)$`)

// placeOf is the action and the part of its result in which a difference stands. Of a state the part says which member,
// of a stream the mode.
func placeOf(d *trace.Difference) (action int, part string) {
	m := placePattern.FindStringSubmatch(d.Path)
	_, _ = fmt.Sscan(m[1], &action) // the pattern lets only digits stand there
	part = m[2]
	switch {
	case part == "":
		return action, "result"
	case part == "state" || part == "history":
		if inner := strings.TrimPrefix(strings.TrimLeft(m[3], "[]0123456789"), "."); inner != "" {
			part += "." + strings.FieldsFunc(inner, func(r rune) bool { return r == '.' || r == '[' })[0]
		}
	}
	return action, part
}

// actionKinds are the members that say what an action is.
var actionKinds = []string{"invoke", "resume", "resume_map", "command", "update_state", "get_state", "history"}

func kindOf(action any) string {
	members, _ := action.(map[string]any)
	for _, k := range actionKinds {
		if _, ok := members[k]; ok {
			return k
		}
	}
	return "?"
}

// group are the cases in which the same parts moved.
type group struct {
	Parts []string `json:"parts"`
	Count int      `json:"count"`
	Cases []string `json:"cases"`

	outcomes []*outcome
}

// report is what the recording of all cases came to.
type report struct {
	Version  string            `json:"version"`
	Packages map[string]string `json:"packages"`
	Cases    int               `json:"cases"`
	Moved    int               `json:"moved"`
	Unstable int               `json:"unstable"`
	Failed   int               `json:"failed"`
	// Groups are the moved cases by what moved, the largest first.
	Groups []*group `json:"groups"`
	// Outcomes are the cases that are not as they are stored.
	Outcomes []*outcome `json:"outcomes"`
}

func newReport(version string, packages map[string]string, outcomes []*outcome) *report {
	r := &report{Version: version, Packages: packages, Cases: len(outcomes), Groups: []*group{}, Outcomes: []*outcome{}}
	groups := map[string]*group{}
	for _, o := range outcomes {
		if o.Unstable {
			r.Unstable++
		}
		if o.Failure != "" {
			r.Failed++
		}
		if o.Unstable || o.Failure != "" || len(o.Moved) > 0 {
			r.Outcomes = append(r.Outcomes, o)
		}
		if len(o.Moved) == 0 {
			continue
		}
		r.Moved++
		parts := o.parts()
		key := strings.Join(parts, ", ")
		if groups[key] == nil {
			groups[key] = &group{Parts: parts}
			r.Groups = append(r.Groups, groups[key])
		}
		g := groups[key]
		g.Count++
		g.Cases = append(g.Cases, o.Case)
		g.outcomes = append(g.outcomes, o)
	}
	slices.SortStableFunc(r.Groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Parts, b.Parts))
	})
	return r
}

// parts are all parts that moved in a case.
func (o *outcome) parts() []string {
	var out []string
	for _, m := range o.Moved {
		out = append(out, m.Parts...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// text is the report as people read it.
func (r *report) text() string {
	var b strings.Builder
	for _, g := range r.Groups {
		fmt.Fprintf(&b, "%d moved in %s\n", g.Count, strings.Join(g.Parts, ", "))
		for _, o := range g.outcomes {
			note := ""
			if o.Unstable {
				note = " (not stable)"
			}
			fmt.Fprintf(&b, "  %s%s\n", o.Case, note)
			for _, m := range o.Moved {
				fmt.Fprintf(&b, "    action %d, %s: %s: %s\n", m.Index, m.Action, strings.Join(m.Parts, ", "), m.first)
			}
		}
	}
	for _, o := range r.Outcomes {
		switch {
		case o.Failure != "":
			fmt.Fprintf(&b, "FAIL %s (%s): %s\n", o.Case, o.Place, o.Failure)
		case o.Unstable && len(o.Moved) == 0:
			fmt.Fprintf(&b, "not stable, but LangGraph still answers what is stored: %s\n", o.Case)
		}
	}
	fmt.Fprintf(&b, "%d of %d cases moved in LangGraph %s (langchain-core %s)", r.Moved, r.Cases, r.Version, r.Packages["langchain-core"])
	if r.Unstable > 0 {
		fmt.Fprintf(&b, ", %d are not stable", r.Unstable)
	}
	if r.Failed > 0 {
		fmt.Fprintf(&b, ", %d could not be recorded", r.Failed)
	}
	return b.String() + "\n"
}
