package serve

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// extractFrom are the parts of a thread that a path may begin with, and mostExtracts how many paths a search may have.
var extractFrom = []string{"config", "interrupts", "metadata", "values"}

const mostExtracts = 10

// step is one step of a path: a member's name, or the place of an element, which counts from the end below 0.
var step = regexp.MustCompile(`^(?:\.?([^.\[\]]+)|\[(-?\d{1,9})\])`)

// checkExtract refuses paths that lead nowhere in any thread.
func (q *threadSearch) checkExtract() error {
	if len(q.Extract) > mostExtracts {
		return refuse(http.StatusUnprocessableEntity, "extract: %d paths, at most %d", len(q.Extract), mostExtracts)
	}
	for _, path := range q.Extract {
		root := path
		if end := strings.IndexAny(path, ".["); end >= 0 {
			root = path[:end]
		}
		if !slices.Contains(extractFrom, root) {
			return refuse(http.StatusUnprocessableEntity, "extract: the path %q begins with none of %s", path, strings.Join(extractFrom, ", "))
		}
		for rest := path; rest != ""; {
			one := step.FindString(rest)
			if one == "" {
				return refuse(http.StatusUnprocessableEntity, "extract: the path %q is not one of names with dots between them and [places]", path)
			}
			rest = rest[len(one):]
		}
	}
	return nil
}

// extracted is what a thread has at the paths, null where there is nothing; nil when nothing was asked for.
func (q *threadSearch) extracted(t threadOut) object {
	if len(q.Extract) == 0 {
		return nil
	}
	out, whole := object{}, raw(t)
	for name, path := range q.Extract {
		out[name] = at(whole, path)
	}
	return out
}

// at is what a value has at a path, null for nothing.
func at(v json.RawMessage, path string) json.RawMessage {
	for path != "" {
		one := step.FindStringSubmatch(path)
		path = path[len(one[0]):]
		if one[2] == "" {
			var members object
			if json.Unmarshal(v, &members) != nil {
				return raw(nil)
			}
			v = members[one[1]]
		} else {
			v = element(v, one[2])
		}
		if v == nil {
			return raw(nil)
		}
	}
	return v
}

// element is what a list has at a place, nil for nothing.
func element(v json.RawMessage, place string) json.RawMessage {
	var all []json.RawMessage
	n, err := strconv.Atoi(place)
	if err != nil || json.Unmarshal(v, &all) != nil {
		return nil
	}
	if n < 0 {
		n += len(all)
	}
	if n < 0 || n >= len(all) {
		return nil
	}
	return all[n]
}
