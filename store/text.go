package store

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// whole is the path of all of a value.
const whole = "$"

// step is one step of a path: into a member, an element, or all of either.
type step struct {
	member string
	at     int
	kind   stepKind
}

type stepKind int

const (
	stepMember stepKind = iota
	stepElement
	stepElements // [*]
	stepMembers  // *
)

// checkPaths refuses paths that there are not.
func checkPaths(paths []string) error {
	if len(paths) > maxPaths {
		return refuse("%d paths are to be embedded, the most is %d", len(paths), maxPaths)
	}
	for _, p := range paths {
		if _, ok := parsePath(p); !ok {
			return refuse("%.100q is no path in a value: such are \"a.b\", \"a[0]\", \"a[-1]\", \"a[*].c\" and \"$\"", p)
		}
	}
	return nil
}

// parsePath reads a path; that of the whole value has no steps.
func parsePath(path string) ([]step, bool) {
	if path == whole {
		return nil, true
	}
	var steps []step
	for _, part := range strings.Split(path, ".") {
		name, rest, indexed := strings.Cut(part, "[")
		switch {
		case name == anyLabel:
			steps = append(steps, step{kind: stepMembers})
		case name != "":
			steps = append(steps, step{member: name})
		case !indexed:
			return nil, false
		}
		for indexed {
			var at string
			var closed bool
			if at, rest, closed = strings.Cut(rest, "]"); !closed {
				return nil, false
			}
			s := step{kind: stepElements}
			if at != anyLabel {
				n, err := strconv.Atoi(at)
				if err != nil {
					return nil, false
				}
				s = step{kind: stepElement, at: n}
			}
			steps = append(steps, s)
			if rest == "" {
				break
			}
			if !strings.HasPrefix(rest, "[") {
				return nil, false
			}
			rest = rest[1:]
		}
	}
	return steps, len(steps) <= MaxDepth
}

// textsOf are the texts of a value at some paths, in the order of the paths: texts as they are, other JSON as it is written. What is not
// there or null has none.
func textsOf(value json.RawMessage, paths []string) ([]string, error) {
	var out []string
	var v any
	for _, p := range paths {
		if p == whole {
			out = append(out, string(value))
			continue
		}
		if v == nil {
			var err error
			if v, err = decodeNumbers(value); err != nil {
				return nil, err
			}
		}
		steps, _ := parsePath(p)
		found, err := texts(v, steps)
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); len(out) > MaxVectors {
			break
		}
	}
	if len(out) > MaxVectors {
		return nil, refuse("more than %d texts of the value would be embedded: give fewer paths, or WithoutIndex", MaxVectors)
	}
	return out, nil
}

// texts follows the rest of a path from a value on.
func texts(v any, steps []step) ([]string, error) {
	if len(steps) == 0 {
		return textOf(v)
	}
	var next []any
	switch s := steps[0]; s.kind {
	case stepMember:
		members, _ := v.(map[string]any)
		next = []any{members[s.member]}
	case stepMembers:
		members, _ := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			next = append(next, members[name])
		}
	case stepElements:
		next, _ = v.([]any)
	case stepElement:
		list, _ := v.([]any)
		at := s.at
		if at < 0 {
			at += len(list)
		}
		if at >= 0 && at < len(list) {
			next = list[at : at+1]
		}
	}
	var out []string
	for _, one := range next {
		found, err := texts(one, steps[1:])
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); len(out) > MaxVectors {
			return out, nil // too many in any case
		}
	}
	return out, nil
}

func textOf(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	}
	text, err := json.Marshal(v)
	return []string{string(text)}, err
}
