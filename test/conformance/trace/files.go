package trace

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Text is the text of one case and where it stands.
type Text struct {
	// File is the file, Line the line of a file that holds a case on every line, from 1; 0 for the others.
	File string
	Line int
	// Bytes are the case as it stands there.
	Bytes []byte
}

// Place is the file, with the line when the file holds a case on every line.
func (t *Text) Place() string {
	if t.Line == 0 {
		return t.File
	}
	return fmt.Sprintf("%s:%d", t.File, t.Line)
}

// Read reads the cases of files and folders, in order of place. A path without cases is an error.
func Read(paths []string) ([]Text, error) {
	var out []Text
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
	return slices.Contains([]string{".json", linesEnding}, filepath.Ext(path))
}

// linesEnding ends the names of files that hold a case on every line.
const linesEnding = ".jsonl"

// split is the cases of one file.
func split(file string, text []byte) []Text {
	if filepath.Ext(file) != linesEnding {
		return []Text{{File: file, Bytes: text}}
	}
	var out []Text
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) > 0 {
			out = append(out, Text{File: file, Line: i + 1, Bytes: line})
		}
	}
	return out
}
