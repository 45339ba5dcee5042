package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// source is the text of one case and where it stands.
type source struct {
	// place is the file, with the line when the file holds a case on every line.
	place string
	text  []byte
	// doc is the decoded case; err says why it is nil.
	doc *caseDoc
	err error
}

// name is the case's name, or its place when it has none that can be read.
func (s *source) name() string {
	if s.doc == nil {
		return s.place
	}
	return s.doc.Name
}

// loadCases reads the cases of files and folders, in order of place. A case that cannot be decoded is among them with
// its error; a path without cases is an error.
func loadCases(paths []string) ([]source, error) {
	var out []source
	for _, path := range paths {
		files, err := caseFiles(path)
		if err != nil {
			return nil, err
		}
		before := len(out)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading cases: %w", err)
			}
			out = append(out, split(file, text)...)
		}
		if len(out) == before {
			return nil, fmt.Errorf("%s holds no cases", path)
		}
	}
	return out, nil
}

// caseFiles is path itself if it is a file, else the case files below it.
func caseFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("finding cases: %w", err)
	}
	if !info.IsDir() {
		if !isCaseFile(path) {
			return nil, fmt.Errorf("%s is neither a .json nor a .jsonl file", path)
		}
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(p string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && isCaseFile(p) {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("finding cases: %w", err)
	}
	slices.Sort(files)
	return files, nil
}

func isCaseFile(path string) bool {
	return slices.Contains([]string{".json", ".jsonl"}, filepath.Ext(path))
}

// split is the cases of one file: each line of a .jsonl is one, any other file is one.
func split(file string, text []byte) []source {
	if filepath.Ext(file) != ".jsonl" {
		return []source{newSource(file, text)}
	}
	var out []source
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) > 0 {
			out = append(out, newSource(fmt.Sprintf("%s:%d", file, i+1), line))
		}
	}
	return out
}

func newSource(place string, text []byte) source {
	doc, err := decodeCase(text)
	return source{place: place, text: text, doc: doc, err: err}
}
