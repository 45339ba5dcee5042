package house

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "write the numbers of testdata/excess.txt that have fallen, and testdata/api.txt")
	accept = flag.Bool("accept", false, "write all numbers of testdata/excess.txt as they are: for packages that are parted or renamed")
)

const excessFile = "testdata/excess.txt"

const excessHead = `# What is above a limit of the house today. A number may only fall: go test ./internal/house -update writes those that have.
`

// measure holds numbers of one kind to a limit. What is above the limit must be in the table of excess, with the same
// number: one that has grown is a mistake, one that has fallen is written down.
func measure(t *testing.T, kind string, limit int, numbers map[string]int, advice string) {
	t.Helper()
	known := readExcess(t)
	changed := false
	if *accept {
		for name, now := range numbers {
			if now > limit {
				known[kind+" "+name] = now
			}
		}
		*update, changed = true, true
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		now, entry := numbers[name], kind+" "+name
		was, excused := known[entry]
		switch {
		case now > limit && !excused:
			t.Errorf("%s: %d, at most %d: %s", entry, now, limit, advice)
		case now > was && excused:
			t.Errorf("%s: %d, it was %d and may only fall: %s", entry, now, was, advice)
		case excused && now < was && !*update:
			t.Errorf("%s has fallen from %d to %d: go test ./internal/house -update writes that down", entry, was, now)
		case excused && now <= limit:
			delete(known, entry)
			changed = true
		case excused && now < was:
			known[entry], changed = now, true
		}
	}
	for entry := range known {
		if name, ok := strings.CutPrefix(entry, kind+" "); ok {
			if _, there := numbers[name]; !there {
				if !*update {
					t.Errorf("%s is no more: go test ./internal/house -update forgets it", entry)
				}
				delete(known, entry)
				changed = true
			}
		}
	}
	if changed && *update {
		writeExcess(t, known)
	}
}

// readExcess reads lines of the form "kind name number".
func readExcess(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(excessFile)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var kind, name string
		var number int
		if _, err := fmt.Sscan(line, &kind, &name, &number); err != nil {
			t.Fatalf("%s: %q: %v", excessFile, line, err)
		}
		known[kind+" "+name] = number
	}
	return known
}

func writeExcess(t *testing.T, known map[string]int) {
	t.Helper()
	var text strings.Builder
	text.WriteString(excessHead)
	for _, entry := range slices.Sorted(maps.Keys(known)) {
		fmt.Fprintln(&text, entry, known[entry])
	}
	if err := os.WriteFile(excessFile, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
