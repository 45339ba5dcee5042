package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"superstep.dev/cli/screen"
)

// The bounds of what a command line sends, in bytes. Both stay well below what one event of a run can hold.
const (
	maxInput  = 1 << 20
	maxAnswer = 256 << 10
)

// jsonFlag is a flag that takes JSON: as it stands, from @FILE, or from standard input as "-".
type jsonFlag struct {
	name string
	max  int
	// object says that only an object will do.
	object bool
}

// jsonText returns the JSON text that a flag's value stands for.
func (a *app) jsonText(ctx context.Context, name string, max int, value string) (json.RawMessage, error) {
	return jsonFlag{name: name, max: max}.read(ctx, value, a.stdin)
}

// jsonObject is jsonText of a flag that takes an object.
func (a *app) jsonObject(ctx context.Context, name string, max int, value string) (json.RawMessage, error) {
	return jsonFlag{name: name, max: max, object: true}.read(ctx, value, a.stdin)
}

// read returns the JSON text that the flag's value stands for, checked but not changed: numbers keep their digits.
func (f jsonFlag) read(ctx context.Context, flag string, stdin io.Reader) (json.RawMessage, error) {
	text, err := f.text(ctx, flag, stdin)
	if err != nil {
		return nil, err
	}
	if len(text) > f.max {
		return nil, usagef("%s is over %s; put large data where the graph can fetch it", f.name, size(f.max))
	}
	if at := invalidUTF8(text); at >= 0 {
		return nil, usagef("%s is not UTF-8 at %s", f.name, position(text, at))
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, usagef("%s is empty; it takes JSON, for instance '{}'", f.name)
	}
	var value json.RawMessage
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, f.notJSON(text, err)
	}
	value = bytes.TrimSpace(value)
	if f.object && value[0] != '{' {
		return nil, usagef(`%s is %s; it takes an object, for instance '{"order_id":"o-7"}'`, f.name, kindOf(value))
	}
	return value, nil
}

// text fetches the value's text, bounded.
func (f jsonFlag) text(ctx context.Context, value string, stdin io.Reader) ([]byte, error) {
	path, isFile := strings.CutPrefix(value, "@")
	switch {
	case value == "-":
		text, err := readBounded(ctx, stdin, f.max)
		if err != nil {
			return nil, fmt.Errorf("%s from standard input: %w", f.name, err)
		}
		return text, nil
	case isFile && path == "":
		return nil, usagef("%s @ names no file: use @FILE", f.name)
	case isFile:
		return f.fromFile(ctx, path)
	default:
		return []byte(value), nil
	}
}

func (f jsonFlag) fromFile(ctx context.Context, path string) (text []byte, err error) {
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		text, err = readBounded(ctx, file, f.max)
	}
	if err == nil || errors.Is(err, errInterrupted) {
		return text, err
	}
	reason := err
	if detail := (*fs.PathError)(nil); errors.As(err, &detail) {
		reason = detail.Err
	}
	return nil, usagef("%s: cannot read the file %s: %w", f.name, quoted(path), reason)
}

// readBounded reads at most one byte more than most, so that the caller sees an excess. It gives up when ctx ends:
// standard input may never come to an end.
func readBounded(ctx context.Context, r io.Reader, most int) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
		done <- result{text, err}
	}()
	select {
	case got := <-done:
		return got.text, got.err
	case <-ctx.Done():
		return nil, interrupt("interrupted")
	}
}

// plainText reads a text: as it stands, from @FILE, or from standard input as "-".
func (a *app) plainText(ctx context.Context, name, value string, most int) (string, error) {
	raw, err := jsonFlag{name: name, max: most}.text(ctx, value, a.stdin)
	text := strings.TrimSpace(string(raw))
	switch {
	case err != nil:
		return "", err
	case len(raw) > most:
		return "", usagef("%s is over %s", name, size(most))
	case invalidUTF8(raw) >= 0:
		return "", usagef("%s is not UTF-8 at %s", name, position(raw, invalidUTF8(raw)))
	case text == "":
		return "", usagef("%s is empty", name)
	}
	return text, nil
}

// notJSON says where the text stops being JSON, and what would help in the usual case of forgotten quotes.
func (f jsonFlag) notJSON(text []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return usagef("%s is not JSON: %w", f.name, err)
	}
	at := int(syntax.Offset) - 1
	if strings.HasPrefix(syntax.Error(), "unexpected end") {
		at = len(text)
	}
	message := fmt.Sprintf("%s is not JSON at %s: %v", f.name, position(text, at), syntax)
	switch {
	case !isWord(text):
	case f.object:
		message += `; it takes an object, for instance '{"order_id":"o-7"}'`
	default:
		message += `; a string needs its quotes: ` + screen.ShellQuote(`"`+string(text)+`"`)
	}
	return &usageError{message: message, err: err}
}

// kindOf names a JSON value's kind.
func kindOf(text json.RawMessage) string {
	kinds := map[byte]string{'{': "an object", '[': "an array", '"': "a string", 't': "a boolean", 'f': "a boolean", 'n': "null"}
	return cmp.Or(kinds[text[0]], "a number")
}

// isWord reports whether text looks like a string whose quotes were forgotten, or eaten by the shell.
func isWord(text []byte) bool {
	letter, _ := utf8.DecodeRune(text)
	return unicode.IsLetter(letter) && len(text) <= 40 && !bytes.ContainsAny(text, "\"'\\{}[]") && screen.Clean(string(text)) == string(text)
}

// position shows a byte offset as people count: lines and characters from 1.
func position(text []byte, at int) string {
	at = max(0, min(at, len(text)))
	line := bytes.Count(text[:at], []byte("\n")) + 1
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	return fmt.Sprintf("line %d column %d", line, utf8.RuneCount(text[start:at])+1)
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, -1 if there is none.
func invalidUTF8(text []byte) int {
	for i, r := range string(text) {
		if r == utf8.RuneError && !bytes.HasPrefix(text[i:], []byte("\ufffd")) {
			return i
		}
	}
	return -1
}

// size shows a bound.
func size(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
