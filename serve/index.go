package serve

import (
	"context"
	"sync"
	"time"

	"superstep.dev/serve/record"
)

// index is what this process knows of threads: what it has just changed is found at once, whatever the server's index says.
type index struct {
	mu    sync.Mutex
	known map[string]record.Line
	noted map[string]time.Time
}

// keptFor is how long what this process has changed is remembered: longer than the server's index lags.
const keptFor = 5 * time.Minute

// note remembers how a thread is now.
func (x *index) note(t record.Thread) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known == nil {
		x.known, x.noted = map[string]record.Line{}, map[string]time.Time{}
	}
	for id, at := range x.noted {
		if len(x.noted) > 10_000 && time.Since(at) > keptFor {
			delete(x.known, id)
			delete(x.noted, id)
		}
	}
	if x.known[t.ID].Version <= t.Version || x.known[t.ID].Created.Before(t.Created) {
		x.known[t.ID], x.noted[t.ID] = t.Line(), time.Now()
	}
}

// lines are the threads that the server lists, and those that this process knows better.
func (x *index) lines(ctx context.Context, records *record.Records) ([]record.Line, error) {
	x.mu.Lock()
	own := make(map[string]record.Line, len(x.known))
	for id, l := range x.known {
		own[id] = l
	}
	x.mu.Unlock()
	var out []record.Line
	err := records.List(ctx, func(l record.Line) bool {
		if mine, ok := own[l.ID]; ok && mine.Version >= l.Version {
			l = mine
		}
		delete(own, l.ID)
		if !l.Deleted {
			out = append(out, l)
		}
		return true
	})
	for _, l := range own {
		if !l.Deleted {
			out = append(out, l)
		}
	}
	return out, err
}
