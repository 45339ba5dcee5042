package cli

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"superstep.dev"
)

// maxThreadID bounds the names of threads, graphs and nodes, in bytes.
const maxThreadID = 200

// checkThread refuses what cannot be a thread's id, and a dash in front that would make it a flag.
func checkThread(id string) error {
	if strings.HasPrefix(id, "-") {
		return usagef("the thread id %s begins with a dash, which would make it a flag", quoted(id))
	}
	var bad *superstep.Error
	if errors.As(superstep.CheckThreadID(id), &bad) {
		return usagef("%s", bad.Message)
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
