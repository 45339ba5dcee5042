package pregel

import (
	"slices"
	"strings"
)

// taskRecords are what is known of the tasks of a checkpoint, by their paths. Nearly every checkpoint leads to a few tasks,
// for which a list costs least.
type taskRecords struct {
	list []pathRecord
	at   map[string]int // in the list; nil for few
}

type pathRecord struct {
	path string
	rec  *TaskRecord
}

// fewRecords is how many are found without a map.
const fewRecords = 8

func (r *taskRecords) len() int { return len(r.list) }

// grow makes room for n more.
func (r *taskRecords) grow(n int) { r.list = slices.Grow(r.list, n) }

// find returns a record's place in the list, -1 for none.
func (r *taskRecords) find(path string) int {
	if r.at != nil {
		if at, ok := r.at[path]; ok {
			return at
		}
		return -1
	}
	for i := range r.list {
		if r.list[i].path == path {
			return i
		}
	}
	return -1
}

// of returns the record of a path.
func (r *taskRecords) of(path string) (*TaskRecord, bool) {
	if at := r.find(path); at >= 0 {
		return r.list[at].rec, true
	}
	return nil, false
}

// put adds a record, of a path that has none.
func (r *taskRecords) put(path string, rec *TaskRecord) {
	r.list = append(r.list, pathRecord{path, rec})
	switch n := len(r.list); {
	case r.at != nil:
		r.at[path] = n - 1
	case n > fewRecords:
		r.index()
	}
}

func (r *taskRecords) index() {
	r.at = make(map[string]int, cap(r.list))
	for i := range r.list {
		r.at[r.list[i].path] = i
	}
}

func (r *taskRecords) remove(path string) {
	at := r.find(path)
	if at < 0 {
		return
	}
	r.list = slices.Delete(slices.Clone(r.list), at, at+1) // it may be ranged over
	if r.at != nil {
		r.index()
	}
}

// sorted are the records as they are now, in order of their paths. It is not to be changed.
func (r *taskRecords) sorted() []pathRecord {
	byPath := func(a, b pathRecord) int { return strings.Compare(a.path, b.path) }
	if slices.IsSortedFunc(r.list, byPath) {
		return r.list
	}
	sorted := slices.Clone(r.list)
	slices.SortFunc(sorted, byPath)
	return sorted
}
