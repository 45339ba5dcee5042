package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Clean makes text that came from elsewhere fit for one line of a terminal: white space becomes single spaces, and
// what could move the cursor, colour the screen or turn the reading direction is shown as an escape. A question is
// what a person decides by, so it must not be able to paint over the lines around it.
func Clean(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		if harmless(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// harmless reports whether a terminal shows r and does nothing else. The two joiners are needed by several scripts
// and by emoji.
func harmless(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	return r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.IsSpace(r) ||
		r == zeroWidthNonJoiner || r == zeroWidthJoiner
}

// Shorten cuts s to at most n characters.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}

// Lines is a text of several lines without what a terminal would take for more than text. Its layout is kept.
func Lines(text string) string {
	var b strings.Builder
	for _, r := range strings.TrimRight(text, "\n") {
		switch {
		case harmless(r) || r == ' ' || r == '\n':
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// CellWidth bounds a value in a table, in characters. The whole value is in -o json.
const CellWidth = 100

// Cell shows a value in a table: exactly, as JSON, but not at any length.
func Cell(v json.RawMessage) string { return Brief(Compact(v)) }

// Brief shows a text in a table, not at any length.
func Brief(text string) string { return Shorten(Clean(text), CellWidth) }

// Compact returns JSON text without white space, anything else as it is.
func Compact(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

// Exactly shows JSON with a line for each value: nothing is shortened.
func (s *Screen) Exactly(v json.RawMessage) {
	var indented bytes.Buffer
	switch {
	case len(v) == 0:
		s.Printf("  none\n")
	case json.Indent(&indented, v, "  ", "  ") != nil:
		s.Printf("  %s\n", Clean(string(v)))
	default:
		for line := range strings.Lines("  " + indented.String()) {
			text := strings.TrimLeft(line, " ")
			s.Printf("%s%s\n", line[:len(line)-len(text)], Clean(strings.TrimRight(text, "\n")))
		}
	}
}

// Values shows channels and their values, by name.
func (s *Screen) Values(values map[string]json.RawMessage) {
	t := s.Table()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t.Row(name, Cell(values[name]))
	}
	t.Print("  ")
}

// Colon puts a reason behind a word, nothing for none.
func Colon(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + Clean(reason)
}

// By says by whom, nothing for somebody who gave no name.
func By(who string) string {
	if who == "" {
		return ""
	}
	return " by " + Clean(who)
}

// ShellQuote quotes a word for a POSIX shell when it needs that.
func ShellQuote(word string) string {
	if word != "" && strings.IndexFunc(word, needsQuotes) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// needsQuotes reports whether r means something to a shell, or might.
func needsQuotes(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	default:
		return !strings.ContainsRune("_@%+=:,./-", r)
	}
}

// Redacted stands in for a secret.
const Redacted = "[redacted]"

// Secrets are texts that must never be shown. Its methods may be called from several goroutines.
type Secrets struct {
	mu    sync.RWMutex
	known []string
}

// Keep remembers secrets; empty ones are none.
func (s *Secrets) Keep(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range secrets {
		if secret != "" {
			s.known = append(s.known, secret)
		}
	}
}

// Redact removes the secrets from a text. None should be in it: this is the second lock.
func (s *Secrets) Redact(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, secret := range s.known {
		text = strings.ReplaceAll(text, secret, Redacted)
	}
	return text
}

// Writer returns a writer that redacts what it passes on. Each write is redacted by itself: lines must arrive whole.
func (s *Secrets) Writer(to io.Writer) io.Writer { return redacting{s, to} }

type redacting struct {
	secrets *Secrets
	to      io.Writer
}

// Write implements io.Writer.
func (r redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.to, r.secrets.Redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// IsSecretName reports whether values of that name are secrets, by the words in it.
func IsSecretName(name string) bool {
	plain := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
	for _, word := range []string{"apikey", "authorization", "password", "secret", "credential", "privatekey"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return strings.HasSuffix(plain, "token") // "tokens" are counted, not kept secret
}
