package trace

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Difference is a place where an answer is not what was wanted: a JSON path below the one that the comparison began
// with, and both sides. A side is [Absent] where only the other has the key or the element.
type Difference struct {
	Path      string
	Want, Got any
}

// Absent stands for a key or an element that is not there.
type Absent struct{}

// String shows both sides, shortened.
func (d *Difference) String() string {
	return fmt.Sprintf("%s: want %s, got %s", d.Path, showSide(d.Want), showSide(d.Got))
}

// Missing reports whether a whole result did not come.
func (d *Difference) Missing() bool {
	_, none := d.Got.(Absent)
	return none && !strings.Contains(d.Path, ".")
}

func showSide(v any) string {
	if _, ok := v.(Absent); ok {
		return "nothing"
	}
	return Brief(Canonical(v))
}

// Compare returns the first difference between two values, nil if they are equal.
func Compare(path string, want, got any) *Difference {
	for d := range Differences(path, want, got) {
		return d
	}
	return nil
}

// Differences are all differences between two values. Keys are compared in order of name, elements in order; of lists of
// different length the common elements first.
func Differences(path string, want, got any) iter.Seq[*Difference] {
	return func(yield func(*Difference) bool) { compare(path, want, got, yield) }
}

// compare yields the differences and reports whether more are wanted.
func compare(path string, want, got any, yield func(*Difference) bool) bool {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			return compareObjects(path, w, g, yield)
		}
	case []any:
		if g, ok := got.([]any); ok {
			return compareLists(path, w, g, yield)
		}
	default:
		if Canonical(want) == Canonical(got) {
			return true
		}
	}
	return yield(&Difference{path, want, got})
}

func compareObjects(path string, want, got map[string]any, yield func(*Difference) bool) bool {
	keys := make(map[string]bool, len(want))
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	for _, k := range Keys(keys) {
		at := path + "." + k
		w, wanted := want[k]
		g, given := got[k]
		more := true
		switch {
		case !wanted:
			more = yield(&Difference{at, Absent{}, g})
		case !given:
			more = yield(&Difference{at, w, Absent{}})
		default:
			more = compare(at, w, g, yield)
		}
		if !more {
			return false
		}
	}
	return true
}

func compareLists(path string, want, got []any, yield func(*Difference) bool) bool {
	for i := range max(len(want), len(got)) {
		at := path + "[" + strconv.Itoa(i) + "]"
		more := true
		switch {
		case i >= len(got):
			more = yield(&Difference{at, want[i], Absent{}})
		case i >= len(want):
			more = yield(&Difference{at, Absent{}, got[i]})
		default:
			more = compare(at, want[i], got[i], yield)
		}
		if !more {
			return false
		}
	}
	return true
}
