package planner

import "strings"

// maxDepth bounds how deeply the JSON in an answer is nested: a plan needs four levels, an output schema some more.
const maxDepth = 64

// blocks calls yield for every {…} or […] in text whose brackets match, outer ones first. Those inside a block are visited
// too, unless yield returns true: it took the block. A bracket without an end costs a look at all that follows, so the work
// is bounded: whatever text is, it is gone over 64 times at most.
func blocks(text string, yield func(block string) (taken bool)) {
	effort := 64 * (len(text) + 1024)
	for i := 0; i < len(text) && effort > 0; i++ {
		if text[i] != '{' && text[i] != '[' {
			continue
		}
		n, read := matching(text[i:])
		effort -= read
		if n > 0 && yield(text[i:i+n]) {
			i += n - 1
		}
	}
}

// matching returns the length of the value that begins text, 0 when it has no end, and how much was read to find out.
func matching(text string) (n, read int) {
	open := make([]byte, 0, maxDepth) // does not escape
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{', '[':
			if len(open) == maxDepth {
				return 0, i
			}
			open = append(open, c+2) // the closing bracket, in ASCII
		case '}', ']':
			if open[len(open)-1] != c {
				return 0, i
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1, i + 1
			}
		case '"':
			i += quoted(text[i:]) - 1
		case '/':
			i += comment(text[i:])
		}
	}
	return 0, len(text)
}

// quoted returns the length of the string that begins text, its quotes included.
func quoted(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// comment returns how much of the comment that begins text follows its first character, 0 when there is none.
func comment(text string) int {
	end := -1
	switch {
	case strings.HasPrefix(text, "//"):
		end = strings.IndexByte(text, '\n')
	case strings.HasPrefix(text, "/*"):
		if end = strings.Index(text[2:], "*/"); end >= 0 {
			end += len("/**/") - 1
		}
	default:
		return 0
	}
	if end < 0 {
		return len(text) - 1
	}
	return end
}

// escaped returns block with the line breaks and tabs inside its strings as JSON wants them: models often write them as
// they are.
func escaped(block string) string {
	var b strings.Builder
	for i := 0; i < len(block); {
		n := 1
		switch block[i] {
		case '"':
			n = quoted(block[i:])
			b.WriteString(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(block[i : i+n]))
			i += n
			continue
		case '/':
			n += comment(block[i:])
		}
		b.WriteString(block[i : i+n])
		i += n
	}
	return b.String()
}
