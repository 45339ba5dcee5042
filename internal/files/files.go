// Package files reads configuration that may change while it is used.
package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxFiles = 100
	maxSize  = 1 << 20
)

// File is one that was read.
type File struct {
	Path string
	Text []byte
	Mode fs.FileMode
}

// Read reads the files at the paths, and of directories those whose names end as one of endings says, in the order of
// their names. It reads at most 100 files of at most 1 MiB; only regular files, which a link may name. A directory's
// hidden files are left out.
func Read(paths []string, endings ...string) ([]File, error) {
	var out []File
	for _, path := range paths {
		names, err := expand(path, endings)
		if err != nil {
			return nil, err
		}
		if len(out)+len(names) > maxFiles {
			return nil, fmt.Errorf("%s: more than %d files", path, maxFiles)
		}
		for _, name := range names {
			f, err := read(name)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	return out, nil
}

func expand(path string, endings []string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && slices.Contains(endings, filepath.Ext(e.Name())) {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	return names, nil
}

func read(path string) (File, error) {
	// Opening a pipe waits for its other end, so what it is comes first.
	if info, err := os.Stat(path); err != nil {
		return File{}, err
	} else if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	if len(text) > maxSize {
		return File{}, fmt.Errorf("%s has more than %d bytes", path, maxSize)
	}
	return File{Path: path, Text: text, Mode: info.Mode()}, nil
}

// Version returns 16 hex digits that stand for what the files hold, and for the order of their names.
func Version(all []File) string {
	texts := make([][]byte, len(all))
	for i, f := range all {
		texts[i] = f.Text
	}
	whole, _ := json.Marshal(texts) // bytes always encode
	sum := sha256.Sum256(whole)
	return hex.EncodeToString(sum[:8])
}

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

// Again is Get with the files read now, for who misses something that they may have by now.
func (w *Watched[T]) Again() (good T, version string, err error) {
	w.mu.Lock()
	w.read = time.Time{}
	w.mu.Unlock()
	return w.Get()
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
