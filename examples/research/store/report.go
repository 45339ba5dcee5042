package store

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strings"
)

// Report is what is published.
type Report struct {
	// Job names whose report it is: letters, digits, ".", "_" and "-".
	Job  string `json:"job"`
	Text string `json:"text"`
}

// Receipt says that a report is published, and where.
type Receipt struct {
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
}

// RefusedError is a report that is never published, however often it is tried.
type RefusedError struct{ Problem string }

// Error says why.
func (e *RefusedError) Error() string { return "store: the report is refused: " + e.Problem }

// Permanent says that no repetition helps.
func (*RefusedError) Permanent() bool { return true }

var (
	jobName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)
	keyName = regexp.MustCompile(`^[A-Za-z0-9_-]{8,255}$`)
)

// Publish publishes a report under a key, once: a second call with the key returns the receipt of the report that is there.
// It fails with a *[RefusedError] when another report is published under the key.
func (s *Store) Publish(_ context.Context, key string, r Report) (Receipt, error) {
	path, err := place(key, r.Job)
	if err != nil {
		return Receipt{}, err
	}
	// A link, unlike a rename, never takes the place of what is there.
	err = s.write(path, []byte(r.Text), s.root.Link)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return Receipt{}, &Error{scheme + path, err}
	}
	receipt, _, err := s.FindReport(context.Background(), key, r)
	if err == nil && receipt.SHA256 != sum([]byte(r.Text)) {
		return Receipt{}, &RefusedError{"another one is published under its key"}
	}
	return receipt, err
}

// FindReport returns the receipt of what is published under a key, and false when nothing is.
func (s *Store) FindReport(_ context.Context, key string, r Report) (Receipt, bool, error) {
	path, err := place(key, r.Job)
	if err != nil {
		return Receipt{}, false, err
	}
	text, err := s.read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Receipt{}, false, nil
	case err != nil:
		return Receipt{}, false, &Error{scheme + path, err}
	}
	return Receipt{URI: scheme + path, SHA256: sum(text)}, true, nil
}

// Withdraw takes a published report back. Withdrawing it again does nothing.
func (s *Store) Withdraw(_ context.Context, r Receipt) error {
	path, ok := strings.CutPrefix(r.URI, scheme)
	if !ok {
		return &Error{r.URI, ErrScheme}
	}
	if err := s.root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &Error{r.URI, err}
	}
	return nil
}

// place is the file of a report: a key has one.
func place(key, job string) (path string, err error) {
	if !jobName.MatchString(job) {
		return "", &RefusedError{"its job has no name that a file can have"}
	}
	if !keyName.MatchString(key) {
		return "", &RefusedError{"its key is no name that a file can have"}
	}
	return "reports/" + job + "-" + key + ".md", nil
}
