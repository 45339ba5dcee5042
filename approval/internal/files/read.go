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
