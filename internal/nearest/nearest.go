package nearest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// distance is the number of bytes to insert, delete, replace or swap with their neighbour to turn a into b.
func distance(a, b string) int {
	older, old := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := old[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(old[j+1]+1, row[j]+1, change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		older, old = old, row
	}
	return old[len(b)]
}
