// Package clip bounds texts that are shown, logged or kept.
package clip

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns text when it has at most that many bytes, and otherwise its beginning, cut between two characters, with an
// ellipsis that counts. What is not UTF-8 in it is replaced, so that every store takes the result. Where an ellipsis has no
// room, nothing is left.
func Text(text string, most int) string {
	const more = "…"
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	end := most - len(more)
	if end < 0 {
		return ""
	}
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// maxLine bounds a [Line], in bytes.
const maxLine = 300

// Line is text as one line of at most 300 bytes, as lists and notices show it.
func Line(text string) string {
	return Text(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "), maxLine)
}
