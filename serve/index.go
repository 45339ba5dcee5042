package serve

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"
)

// line is what lists know of something.
type line interface {
	// Place is where a list has it, and how new the line is.
	Place() (id string, created time.Time, version int64, deleted bool)
}

// index is what this process knows of what is listed: what it has just changed is found at once, whatever the server's index says.
type index[L line] struct {
	mu    sync.Mutex
	known map[string]L
	noted map[string]time.Time
}

// keptFor is how long what this process has changed is remembered: longer than the server's index lags.
const keptFor = 5 * time.Minute

// newer reports whether a says no less of the same thing than b, or is of a later thing under the same id.
func newer[L line](a, b L) bool {
	_, createdA, versionA, _ := a.Place()
	_, createdB, versionB, _ := b.Place()
	if !createdA.Equal(createdB) {
		return createdA.After(createdB)
	}
	return versionA >= versionB
}

// note remembers how something is now.
func (x *index[L]) note(l L) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known == nil {
		x.known, x.noted = map[string]L{}, map[string]time.Time{}
	}
	for id, at := range x.noted {
		if len(x.noted) > 10_000 && time.Since(at) > keptFor {
			delete(x.known, id)
			delete(x.noted, id)
		}
	}
	id, _, _, _ := l.Place()
	if before, ok := x.known[id]; !ok || newer(l, before) {
		x.known[id], x.noted[id] = l, time.Now()
	}
}

// lines are those that the server lists, and those that this process knows better. What it knows and the server does not list is read:
// another process may have deleted it since.
func (x *index[L]) lines(ctx context.Context, list func(context.Context, func(L) bool) error, read func(context.Context, string) (L, error)) ([]L, error) {
	x.mu.Lock()
	own := maps.Clone(x.known)
	x.mu.Unlock()
	var out []L
	err := list(ctx, func(l L) bool {
		id, _, _, _ := l.Place()
		if mine, ok := own[id]; ok && newer(mine, l) {
			l = mine
		}
		delete(own, id)
		if !deleted(l) {
			out = append(out, l)
		}
		return true
	})
	for id, l := range own {
		if err != nil || deleted(l) {
			continue
		}
		l, missing := read(ctx, id)
		switch {
		case missing != nil && faultOf(missing).status == http.StatusNotFound:
			x.forget(id)
		case missing != nil:
			err = missing
		default:
			out = append(out, l)
		}
	}
	return out, err
}

func deleted[L line](l L) bool {
	_, _, _, gone := l.Place()
	return gone
}

func (x *index[L]) forget(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.known, id)
	delete(x.noted, id)
}
