package job

import (
	"unicode/utf8"
)

// quoted is how many bytes a text takes in JSON as encoding/json writes it, quotes included: what a bound on stored bytes
// has to count, since one byte may become six.
func quoted(text string) int {
	n := 2
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			n += quotedByte(c)
			i++
			continue
		}
		r, width := utf8.DecodeRuneInString(text[i:])
		if r == '\u2028' || r == '\u2029' || (r == utf8.RuneError && width == 1) {
			n += 6
		} else {
			n += width
		}
		i += width
	}
	return n
}

func quotedByte(c byte) int {
	switch {
	case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f':
		return 2
	case c < ' ' || c == '<' || c == '>' || c == '&':
		return 6
	}
	return 1
}

// clip cuts a text so that it takes at most a number of bytes in JSON, and shows that it did. What is not UTF-8 is replaced.
func clip(text string, room int) string {
	text = valid(text)
	if quoted(text) <= room {
		return text
	}
	const more = "…"
	used := len(more) + 2
	for i, r := range text {
		used += quoted(string(r)) - 2
		if used > room {
			if i == 0 {
				return ""
			}
			return text[:i] + more
		}
	}
	return text
}
