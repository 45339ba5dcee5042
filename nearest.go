package superstep

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// didYouMean completes a message about an unknown name with the known name that looks most like it, or with all of
// them when there are few and none does.
func didYouMean(name string, known map[string]bool) string {
	best, least := "", len(name)/3+2
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(": did you mean %q?", best)
	case len(known) == 0:
		return ""
	}
	return ": there is " + quotedList(known)
}

// quotedList returns the names in order, shortened when there are many.
func quotedList(names map[string]bool) string {
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

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
