package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes text that came from elsewhere fit for one line of a terminal: white space becomes single spaces, and
// what could move the cursor, colour the screen or turn the reading direction is shown as an escape. A question is
// what a person decides by, so it must not be able to paint over the lines around it.
func clean(s string) string {
	if isClean(s) {
		return s
	}
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

// isClean reports whether s needs no cleaning: the usual case.
func isClean(s string) bool {
	last := ' ' // so that leading space counts as doubled
	for _, r := range s {
		if r == ' ' && last == ' ' || r != ' ' && !harmless(r) {
			return false
		}
		last = r
	}
	return s == "" || last != ' '
}

// harmless reports whether a terminal shows r and does nothing else. The two joiners are needed by several scripts
// and by emoji.
func harmless(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	return r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.IsSpace(r) ||
		r == zeroWidthNonJoiner || r == zeroWidthJoiner
}

// shorten cuts s to at most n characters.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}
