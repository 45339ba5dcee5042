package nearest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// DidYouMean completes a message about an unknown name with the known name that looks most like it, or with all of
// them when there are few and none does.
func DidYouMean(name string, known map[string]bool) string {
	best, least := "", max(1, len(name)/3)+1
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least && d < len(name) {
			best, least = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(": did you mean %q?", best)
	case len(known) == 0:
		return ""
	}
	return ": there is " + QuotedList(known)
}

// QuotedList returns the names in order, shortened when there are many.
func QuotedList(names map[string]bool) string {
	const most = 8
	sorted := slices.Sorted(maps.Keys(names))
	more := ""
	if len(sorted) > most {
		more = fmt.Sprintf(" and %d more", len(sorted)-most)
		sorted = sorted[:most]
	}
	for i, n := range sorted {
		sorted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(sorted, ", ") + more
}

// distance is the number of letters to insert, delete or replace to turn a into b. Two letters that were swapped count as one.
func distance(a, b string) int {
	d, x, y := levenshtein.ComputeDistance(a, b), []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	if d == 2 && slices.Equal(x, y) {
		return 1
	}
	return d
}
