package rules

import (
	"context"
	"errors"
	"fmt"

	"superstep.dev/approval"
	"superstep.dev/internal/files"
)

// Book is what files of rules say: the policy and the directory of an approval.Gate. Its methods may be called from
// several goroutines.
type Book struct {
	// sheet returns what holds now and its version.
	sheet func() (*sheet, string, error)
}

var (
	_ approval.ControlPolicy = (*Book)(nil)
	_ approval.Directory     = (*Book)(nil)
)

// Open returns the book of YAML files and of directories of files whose names end in .yaml or .yml; rules count in the
// order of the files. The files are read again when the book is used, at most once a second, so a change holds a second
// later. Files that have vanished or cannot be used close the book: every method then returns an error, for which the
// gate refuses, until they can. Write a new file beside the old one and rename it, so that half a file is never read.
//
// The error is a [*SyntaxError], or that of reading a file.
func Open(paths ...string) (*Book, error) {
	return open(&files.Watched[*sheet]{Paths: paths, Endings: []string{".yaml", ".yml"}, Make: sheetOf})
}

func open(w *files.Watched[*sheet]) (*Book, error) {
	if _, _, err := w.Get(); err != nil {
		return nil, err
	}
	return &Book{sheet: w.Get}, nil
}

// Parse returns the book of one text. file names it in errors, which are [*SyntaxError].
func Parse(file string, text []byte) (*Book, error) {
	all := []files.File{{Path: file, Text: text}}
	s, err := sheetOf(all)
	if err != nil {
		return nil, err
	}
	return &Book{sheet: func() (*sheet, string, error) { return s, files.Version(all), nil }}, nil
}

func sheetOf(all []files.File) (*sheet, error) {
	s := &sheet{people: map[string]holder{}, groups: map[string]holder{}, roles: map[string]holder{}}
	for _, f := range all {
		if f.Mode.Perm()&0o002 != 0 {
			return nil, &SyntaxError{File: f.Path, Problem: fmt.Sprintf("anybody can change it (mode %04o): chmod o-w it", f.Mode.Perm())}
		}
		r := reader{file: f.Path}
		n, err := r.document(f.Text)
		if err == nil && n != nil {
			err = r.sheet(n, s)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if len(s.rules)+len(s.control) == 0 {
		return nil, errors.New("there are no rules: nothing could ever be approved")
	}
	return s, nil
}

func (b *Book) current() (*sheet, string, error) {
	s, version, err := b.sheet()
	if err != nil {
		return nil, "", fmt.Errorf("nothing is approved until the rules can be read: %w", err)
	}
	return s, "rules:" + version, nil
}

// Decide implements approval.Policy.
func (b *Book) Decide(ctx context.Context, r approval.PolicyRequest) (approval.PolicyRuling, error) {
	s, _, err := b.current()
	if err != nil {
		return approval.PolicyRuling{}, err
	}
	return s.decide(ctx, r)
}

// Person implements approval.Directory.
func (b *Book) Person(_ context.Context, name string) (approval.Person, error) {
	s, _, err := b.current()
	if err != nil {
		return approval.Person{}, err
	}
	return s.person(name)
}

// Version implements approval.Policy and approval.Directory: "rules:" and 16 hex digits that follow from what the files
// hold.
func (b *Book) Version(context.Context) (string, error) {
	_, version, err := b.current()
	return version, err
}
