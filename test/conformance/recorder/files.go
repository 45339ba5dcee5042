package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"superstep.dev/test/conformance/trace"
)

// rewrite writes the new answers into the files of the cases that moved. Whatever did not move stays as it was, byte for
// byte, so that a file's diff shows what moved and nothing else.
func rewrite(cases []*stored, outcomes []*outcome) (files int, err error) {
	changed := map[string]map[int][]byte{} // the new text of a case by file and line
	for i, o := range outcomes {
		if len(o.Moved) == 0 {
			continue
		}
		text, err := cases[i].with(o.expect)
		if err != nil {
			return 0, err
		}
		if changed[cases[i].File] == nil {
			changed[cases[i].File] = map[int][]byte{}
		}
		changed[cases[i].File][cases[i].Line] = text
	}
	for _, file := range trace.Keys(changed) {
		if err := rewriteFile(file, changed[file]); err != nil {
			return 0, err
		}
	}
	return len(changed), nil
}

func rewriteFile(file string, changed map[int][]byte) error {
	text, whole := changed[0]
	if !whole {
		old, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("writing cases: %w", err)
		}
		lines := bytes.Split(old, []byte("\n"))
		for line, text := range changed {
			lines[line-1] = text
		}
		text = bytes.Join(lines, []byte("\n"))
	}
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // cases are public
		return fmt.Errorf("writing cases: %w", err)
	}
	return nil
}

// with is the text of the case with other expected results. Results that did not move keep their text.
func (c *stored) with(expect []any) ([]byte, error) {
	list, results, err := expectIn(c.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Place(), err)
	}
	if len(expect) != len(results) {
		text := spreadAfter(expect, 1, expectAt)
		if c.Line > 0 {
			text = trace.Canonical(expect)
		}
		return splice(c.Bytes, list, text), nil
	}
	out := c.Bytes
	for i := len(results) - 1; i >= 0; i-- {
		if same(c.expect[i:i+1], expect[i:i+1]) {
			continue
		}
		text := spread(expect[i], 2)
		if c.Line > 0 {
			text = trace.Canonical(expect[i])
		}
		out = splice(out, results[i], text)
	}
	return out, nil
}

// span is a part of a text.
type span struct{ from, to int }

func splice(text []byte, at span, with string) []byte {
	return append(append(append([]byte{}, text[:at.from]...), with...), text[at.to:]...)
}

// expectIn finds the expected results in a case's text: the list, and each of them.
func expectIn(text []byte) (list span, results []span, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return list, nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return list, nil, err
		}
		var value json.RawMessage
		if key != "expect" {
			if err := d.Decode(&value); err != nil {
				return list, nil, err
			}
			continue
		}
		if _, err := d.Token(); err != nil {
			return list, nil, err
		}
		list.from = int(d.InputOffset()) - len("[")
		for d.More() {
			if err := d.Decode(&value); err != nil {
				return list, nil, err
			}
			end := int(d.InputOffset())
			results = append(results, span{end - len(value), end})
		}
		if _, err := d.Token(); err != nil {
			return list, nil, err
		}
		list.to = int(d.InputOffset())
		return list, results, nil
	}
	return list, nil, errors.New("the case has no expected results")
}

// width is how long a value may reach on a line of a case file, without what closes the values around it.
const width = 118

// expectAt is where the results of a case file begin on their line: behind ' "expect": '.
const expectAt = 11

// spread is a value as files of one case show it: on one line where it fits, else each member on a line of its own.
// depth is how deep the value stands in the file.
func spread(v any, depth int) string { return spreadAfter(v, depth, depth) }

// spreadAfter is spread for a value that stands behind some characters of its line.
func spreadAfter(v any, depth, before int) string {
	line := spaced(v)
	if before+len(line) <= width {
		return line
	}
	indent := "\n" + strings.Repeat(" ", depth+1)
	var parts []string
	brackets := "[]"
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			parts = append(parts, spread(item, depth+1))
		}
	case map[string]any:
		brackets = "{}"
		for _, k := range trace.Keys(v) {
			key := trace.Canonical(k) + ": "
			parts = append(parts, key+spreadAfter(v[k], depth+1, depth+1+len(key)))
		}
	default:
		return line
	}
	return brackets[:1] + indent + strings.Join(parts, ","+indent) + indent[:depth+1] + brackets[1:]
}

// spaced is a value on one line, with a space behind commas and colons.
func spaced(v any) string {
	var parts []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			parts = append(parts, spaced(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		for _, k := range trace.Keys(v) {
			parts = append(parts, trace.Canonical(k)+": "+spaced(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return trace.Canonical(v)
}
