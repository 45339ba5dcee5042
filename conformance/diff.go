package main

import (
	"fmt"
	"strconv"
	"strings"
)

// difference is the first place where an answer is not what the case expects.
type difference struct {
	path      string
	want, got any
	action    int // the action whose result differs
}

// absent stands for a key or an element that is not there.
type absent struct{}

// String shows both sides, shortened.
func (d *difference) String() string {
	return fmt.Sprintf("%s: want %s, got %s", d.path, showSide(d.want), showSide(d.got))
}

// missing reports whether a whole result did not come.
func (d *difference) missing() bool {
	_, none := d.got.(absent)
	return none && !strings.Contains(d.path, ".")
}

func showSide(v any) string {
	if _, ok := v.(absent); ok {
		return "nothing"
	}
	return brief(canonical(v))
}

// compare returns the first difference between two JSON values, nil if they are equal. Keys are compared in order of
// name, elements in order; of lists of different length the common elements first.
func compare(path string, want, got any) *difference {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			return compareObjects(path, w, g)
		}
	case []any:
		if g, ok := got.([]any); ok {
			return compareLists(path, w, g)
		}
	default:
		if canonical(want) == canonical(got) {
			return nil
		}
	}
	return &difference{path: path, want: want, got: got}
}

func compareObjects(path string, want, got map[string]any) *difference {
	keys := make(map[string]bool, len(want))
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	for _, k := range sortedKeys(keys) {
		at := path + "." + k
		w, wanted := want[k]
		g, given := got[k]
		switch {
		case !wanted:
			return &difference{path: at, want: absent{}, got: g}
		case !given:
			return &difference{path: at, want: w, got: absent{}}
		}
		if d := compare(at, w, g); d != nil {
			return d
		}
	}
	return nil
}

func compareLists(path string, want, got []any) *difference {
	for i := range min(len(want), len(got)) {
		if d := compare(path+"["+strconv.Itoa(i)+"]", want[i], got[i]); d != nil {
			return d
		}
	}
	at := path + "[" + strconv.Itoa(min(len(want), len(got))) + "]"
	switch {
	case len(want) > len(got):
		return &difference{path: at, want: want[len(got)], got: absent{}}
	case len(got) > len(want):
		return &difference{path: at, want: absent{}, got: got[len(want)]}
	}
	return nil
}
