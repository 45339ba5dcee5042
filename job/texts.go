package job

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// valid replaces what is not UTF-8, as JSON would.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// text is one that has a bound, with the name under which people know it.
type text struct {
	name, value string
	max         int
}

// tooLong says which of some texts is longer than its bound, or no UTF-8; "" when none is.
func tooLong(texts ...text) string {
	for _, t := range texts {
		switch {
		case len(t.value) > t.max:
			return fmt.Sprintf("its %s has %d bytes; %d may be", t.name, len(t.value), t.max)
		case !utf8.ValidString(t.value):
			return fmt.Sprintf("its %s is not UTF-8", t.name)
		}
	}
	return ""
}

// validID reports whether a text can be a job's id, or part of a subjob's: see [MaxID].
func validID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	}) < 0
}

// artifactsProblem says why artifacts cannot be kept, "" when they can.
func artifactsProblem(artifacts []Artifact) string {
	if len(artifacts) > MaxArtifacts {
		return fmt.Sprintf("it has %d artifacts; %d may be", len(artifacts), MaxArtifacts)
	}
	for _, a := range artifacts {
		if a.Name == "" || a.URI == "" {
			return "an artifact has no name or no URI"
		}
		if problem := tooLong(text{"artifact's name", a.Name, 256}, text{"artifact's URI", a.URI, 2048}, text{"artifact's kind", a.Kind, 128}); problem != "" {
			return problem
		}
	}
	if size := artifactsSize(artifacts); size > MaxArtifactText {
		return fmt.Sprintf("its artifacts take %d bytes; %d may be", size, MaxArtifactText)
	}
	return ""
}
