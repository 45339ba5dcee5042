package rules

import (
	"time"

	"superstep.dev/internal/files"
)

// OpenAlways opens files that are read at each use.
func OpenAlways(paths ...string) (*Book, error) {
	at := time.Now()
	return open(&files.Watched[*sheet]{Paths: paths, Endings: []string{".yaml", ".yml"}, Make: sheetOf, Now: func() time.Time {
		at = at.Add(time.Second)
		return at
	}})
}
