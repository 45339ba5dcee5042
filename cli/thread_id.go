package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxThreadID bounds a thread's id, in bytes.
const maxThreadID = 200

// checkThread refuses what cannot be a thread's id. The id is shown on screens and typed into shells, hence no
// control characters, and no dash in front that would make it a flag.
func checkThread(id string) error {
	switch {
	case id == "":
		return usagef("the thread id is empty")
	case len(id) > maxThreadID:
		return usagef("the thread id has %d bytes; at most %d are allowed", len(id), maxThreadID)
	case !utf8.ValidString(id):
		return usagef("the thread id %s is not valid UTF-8", quoted(id))
	case strings.HasPrefix(id, "-"):
		return usagef("the thread id %s begins with a dash, which would make it a flag", quoted(id))
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return usagef("the thread id %s has the character %q, which cannot be printed", quoted(id), r)
		}
	}
	return nil
}

// checkGraphName refuses what cannot be a graph's name.
func checkGraphName(name string) error {
	switch {
	case name == "":
		return usagef("the graph's name is empty")
	case len(name) > maxThreadID:
		return usagef("the graph's name has %d bytes; at most %d are allowed", len(name), maxThreadID)
	case strings.Contains(name, "."):
		return usagef("the graph's name %s has a dot, which no graph's name has", quoted(name))
	case strings.HasPrefix(name, "-") || !utf8.ValidString(name) || strings.IndexFunc(name, notPrintable) >= 0:
		return usagef("%s cannot be a graph's name", quoted(name))
	}
	return nil
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }

// newThread makes a readable id for a thread of the graph.
func (a *app) newThread(graph string) string {
	id := a.newID()
	if most := maxThreadID - len(id) - 1; len(graph) > most {
		graph = strings.ToValidUTF8(graph[:most], "")
	}
	return graph + "-" + id
}
