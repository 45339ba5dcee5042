package thread

import (
	"crypto/rand"
	"fmt"
	"strings"
)

const MaxID = 200

// NewID makes an id for a new thread of a graph, or a job of a leader: the name and 130 random bits in lower-case
// letters and digits, so that nobody guesses it or comes by it again. A name that ids cannot begin with is left out.
func NewID(graph string) string {
	random := strings.ToLower(rand.Text())
	if id := graph + "-" + random; graph != "" && IDProblem(id) == "" {
		return id
	}
	return "thread-" + random
}

// CheckID returns an ErrBadInput when no thread can have that id. An id has 1 to 200 of the printable characters of
// ASCII, is not "." or "..", and neither begins nor ends with a blank: it travels in headers and URLs, is shown on screens
// and typed into shells.
func CheckID(id string) error {
	if problem := IDProblem(id); problem != "" {
		return &Error{Kind: ErrBadInput, Thread: id, Message: problem}
	}
	return nil
}

// IDProblem says why no thread can have that id, "" when one can.
func IDProblem(id string) string {
	const allowed = "letters, digits and the punctuation of ASCII are allowed"
	switch {
	case id == "":
		return "the thread id is empty"
	case len(id) > MaxID:
		return fmt.Sprintf("the thread id has %d bytes, the most is %d", len(id), MaxID)
	case strings.TrimSpace(id) == "":
		return "the thread id has nothing but blanks: " + allowed
	case id == "." || id == "..":
		return fmt.Sprintf("the thread id %q means a directory in URLs and paths: give it a name", id)
	case id[0] == ' ' || id[len(id)-1] == ' ':
		return fmt.Sprintf("the thread id %q begins or ends with a blank, which nobody sees", id)
	}
	for _, r := range id {
		if r < ' ' || r > '~' {
			return fmt.Sprintf("the thread id %q has the character %q: %s", id, r, allowed)
		}
	}
	return ""
}
