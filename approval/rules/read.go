package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"superstep.dev/approval"
)

// SyntaxError says what is wrong with a file of rules, and where.
type SyntaxError struct {
	File string
	// Line counts from 1; 0 means the whole file.
	Line    int
	Problem string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Problem
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// reader reads one file.
type reader struct{ file string }

func (r reader) fail(n *yaml.Node, format string, args ...any) error {
	return &SyntaxError{File: r.file, Line: n.Line, Problem: fmt.Sprintf(format, args...)}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document returns the one document in the text, nil for an empty one.
func (r reader) document(text []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if err = dec.Decode(&more); errors.Is(err, io.EOF) {
			return content(&doc), nil
		}
	}
	if err == nil {
		return nil, r.fail(&more, "a second document begins: one file is one document")
	}
	found := yamlLine.FindStringSubmatch(err.Error())
	if found == nil {
		found = []string{"", ""}
	}
	line, _ := strconv.Atoi(found[1])
	return nil, &SyntaxError{File: r.file, Line: line, Problem: strings.TrimPrefix(err.Error(), found[0])}
}

// content returns what a document holds, nil for nothing but comments.
func content(doc *yaml.Node) *yaml.Node {
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil
	}
	return doc.Content[0]
}

// each reads a mapping, whose names must differ, in its order.
func (r reader) each(n *yaml.Node, read func(name string, key, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return r.fail(n, "here belongs a mapping of names")
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		var name string
		if err := r.name(key, &name); err != nil {
			return err
		}
		if seen[name] {
			return r.fail(key, "%q is there twice", name)
		}
		seen[name] = true
		if err := read(name, key, value); err != nil {
			return err
		}
	}
	return nil
}

// fields reads a mapping of which every name is known.
func (r reader) fields(n *yaml.Node, known fieldReaders) error {
	return r.each(n, func(name string, key, value *yaml.Node) error {
		read, ok := known[name]
		if !ok {
			return r.fail(key, "%q is none of %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		return read(value)
	})
}

func (r reader) text(n *yaml.Node, most int, out *string) error {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		return r.fail(n, "here belongs a text")
	}
	if len(n.Value) > most {
		return r.fail(n, "at most %d bytes", most)
	}
	*out = n.Value
	return nil
}

func (r reader) name(n *yaml.Node, out *string) error {
	if err := r.text(n, approval.MaxName, out); err != nil {
		return err
	}
	if strings.ContainsFunc(*out, unicode.IsControl) {
		return r.fail(n, "a name has no control characters")
	}
	return nil
}

// names reads one name or a list of them.
func (r reader) names(n *yaml.Node, out *[]string) error {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	if len(list) == 0 {
		return r.fail(n, "the list is empty, which would match nothing: leave it out to match all, or name some")
	}
	for _, item := range list {
		var name string
		if err := r.name(item, &name); err != nil {
			return err
		}
		*out = append(*out, name)
	}
	return nil
}

// anyNames reads one name or a list of them, which may be empty: of what somebody has, or needs, none is an answer.
func (r reader) anyNames(n *yaml.Node, out *[]string) error {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		return nil
	}
	return r.names(n, out)
}

// words reads names of which every one is known.
func words[T ~string](r reader, n *yaml.Node, out *[]string, known ...T) error {
	if err := r.names(n, out); err != nil {
		return err
	}
	for _, word := range *out {
		if !slices.Contains(known, T(word)) {
			return r.fail(n, "%q is none of %v", word, known)
		}
	}
	return nil
}

func (r reader) number(n *yaml.Node, out *float64) error {
	if n.Kind != yaml.ScalarNode || n.Decode(out) != nil || n.Tag == "!!null" || math.IsNaN(*out) || math.IsInf(*out, 0) || *out < 0 {
		return r.fail(n, "here belongs a number that is not negative")
	}
	return nil
}

func (r reader) count(n *yaml.Node, most int, out *int) error {
	if n.Kind != yaml.ScalarNode || n.Decode(out) != nil || n.Tag == "!!null" || *out < 1 || *out > most {
		return r.fail(n, "here belongs a whole number from 1 to %d", most)
	}
	return nil
}

// duration reads a time such as 90m or 24h.
func (r reader) duration(n *yaml.Node, out *time.Duration) error {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < time.Second || d.Milliseconds() > approval.MaxWithin {
		return r.fail(n, "here belongs a time from 1s to a year, such as 90m or 24h")
	}
	*out = d
	return nil
}

func (r reader) flag(n *yaml.Node, out *bool) error {
	if n.Kind != yaml.ScalarNode || n.Decode(out) != nil || n.Tag == "!!null" {
		return r.fail(n, "here belongs true or false")
	}
	return nil
}
