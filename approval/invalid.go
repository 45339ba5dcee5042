package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The most that an action and a reply may hold. Sizes are in bytes.
const (
	MaxParams    = 64 << 10
	MaxSummary   = 300
	MaxReason    = 1_000
	MaxApprovers = 50                           // also permissions, secrets and watched states
	MaxName      = 200                          // names of people, tools, permissions; versions
	MaxWithin    = int64(366 * 24 * 3600 * 1e3) // milliseconds: a leap year
)

// InvalidError says what is wrong with an action, a reply or what is to be signed.
type InvalidError struct {
	// Of is "action", "reply", "token" or "key".
	Of string
	// Name is the action's tool, "" for the others.
	Name string
	// Field is the one at fault, as it is spelled in JSON; "" for the whole.
	Field   string
	Problem string
}

// Error implements error.
func (e *InvalidError) Error() string {
	text := e.Of
	if e.Name != "" {
		text += " " + quote(e.Name)
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Problem
}

// lineProblem says why text is not one line of at most that many bytes, "" when it is.
func lineProblem(text string, most int) string {
	switch {
	case len(text) > most:
		return fmt.Sprintf("it has at most %d bytes, this one has %d", most, len(text))
	case !utf8.ValidString(text):
		return "it is not valid UTF-8"
	case strings.ContainsFunc(text, unprintable):
		return "it is one line without control characters"
	}
	return ""
}

// unprintable also holds the marks that make a line read differently from how it is stored: an approver sees the text.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
