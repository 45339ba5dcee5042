package files

import (
	"fmt"
	"sync"
	"time"
)

// Watched is what was made of files, made anew when they change. Its methods may be called from several goroutines.
type Watched[T any] struct {
	Paths   []string
	Endings []string
	// Make makes it of the files. Its error stands until the files change.
	Make func([]File) (T, error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu      sync.Mutex
	read    time.Time
	seen    string // the version and modes that good or err was made of
	err     error
	good    T
	version string
}

// every is how often the files are read at most.
const every = time.Second

// Get returns what was last made without an error and the version of its files. The error says why the files as they
// are now cannot be used. They are read when the last time is a second or longer ago.
func (w *Watched[T]) Get() (good T, version string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now
	if w.Now != nil {
		now = w.Now
	}
	at := now()
	// A clock that was set back is a reason to read.
	if since := at.Sub(w.read); w.read.IsZero() || since >= every || since < 0 {
		w.read = at
		w.refresh()
	}
	return w.good, w.version, w.err
}

func (w *Watched[T]) refresh() {
	all, err := Read(w.Paths, w.Endings...)
	if err != nil {
		w.seen, w.err = "", err
		return
	}
	seen := Version(all)
	for _, f := range all {
		seen += fmt.Sprint(" ", f.Path, f.Mode)
	}
	if seen == w.seen {
		return
	}
	made, err := w.Make(all)
	w.seen, w.err = seen, err
	if err == nil {
		w.good, w.version = made, Version(all)
	}
}
