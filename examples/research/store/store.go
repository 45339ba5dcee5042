// Package store is where the experts of the research example keep what they hand to each other by reference, and where
// reports are published: files in one directory, which all workers of the example have to see.
package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"superstep.dev/examples/research/data"
)

// MaxFile bounds what is read and written, in bytes.
const MaxFile = 16 << 20

// Sample is the URI of the data set that the example brings along.
const Sample = "sample:penguins"

// scheme begins the URIs of files in a store; the rest is a path in it.
const scheme = "store:"

// Error says what could not be read or written, by its URI.
type Error struct {
	URI   string
	Cause error
}

// Error names the URI and why.
func (e *Error) Error() string { return fmt.Sprintf("store: %s: %v", e.URI, e.Cause) }

// Unwrap returns the cause: [fs.ErrNotExist] for what is not there.
func (e *Error) Unwrap() error { return e.Cause }

var (
	// ErrScheme says that a URI is none of a store.
	ErrScheme = errors.New("want " + Sample + " or " + scheme + "PATH")
	// ErrTooLong says that a file is longer than [MaxFile].
	ErrTooLong = fmt.Errorf("longer than %d bytes", MaxFile)
)

// Store is a directory. Nothing outside of it is read or written, whatever a URI says. It is safe for concurrent use, by
// several processes too.
type Store struct{ root *os.Root }

// Open opens the store in a directory, which is made when it is not there.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("store: make its directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("store: open its directory: %w", err)
	}
	return &Store{root}, nil
}

// Close lets go of the directory.
func (s *Store) Close() error { return s.root.Close() }

// Read returns the file with a URI: [Sample], or one that the store has made or been given.
func (s *Store) Read(uri string) ([]byte, error) {
	if uri == Sample {
		return data.Penguins, nil
	}
	path, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return nil, &Error{uri, ErrScheme}
	}
	text, err := s.read(path)
	if err != nil {
		return nil, &Error{uri, err}
	}
	return text, nil
}

func (s *Store) read(path string) ([]byte, error) {
	file, err := s.root.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	text, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err == nil && len(text) > MaxFile {
		err = ErrTooLong
	}
	return text, err
}

// PutTable keeps a CSV under a name that follows from its content, so putting it again changes nothing, and returns its
// URI.
func (s *Store) PutTable(text []byte) (uri string, err error) {
	path := "tables/" + sum(text) + ".csv"
	if _, err := s.root.Stat(path); err == nil {
		return scheme + path, nil
	}
	if err := s.write(path, text, s.root.Rename); err != nil {
		return "", &Error{scheme + path, err}
	}
	return scheme + path, nil
}

// write makes a file that is either there as a whole or not at all: place gives what was written its name.
func (s *Store) write(path string, text []byte, place func(from, to string) error) error {
	if len(text) > MaxFile {
		return ErrTooLong
	}
	dir, _, _ := strings.Cut(path, "/")
	if err := s.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	begun := dir + "/.begun-" + rand.Text()
	defer func() { _ = s.root.Remove(begun) }() // gone after a rename
	if err := s.fill(begun, text); err != nil {
		return err
	}
	return place(begun, path)
}

// fill writes a new file, and returns when it is on the disk.
func (s *Store) fill(path string, text []byte) error {
	file, err := s.root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func sum(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
