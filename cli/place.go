package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// place is where in a thread a command looks or writes: a checkpoint of its history, and a subgraph under way.
type place struct{ at, in string }

const (
	// maxCheckpoint bounds a checkpoint's id, and maxSubgraph the path to a subgraph, in bytes.
	maxCheckpoint = 200
	maxSubgraph   = 4 << 10
)

// register adds --in, and --at with the words for it unless they are "".
func (p *place) register(flags *pflag.FlagSet, at string) {
	if at != "" {
		flags.StringVar(&p.at, "at", "", at)
	}
	flags.StringVar(&p.in, "in", "", "subgraph under way in `NODE/NODE`: the nodes that lead to it, outermost first")
}

// subgraph returns the nodes that lead to the subgraph, none for the graph itself.
func (p *place) subgraph() ([]string, error) {
	if p.in == "" {
		return nil, nil
	}
	if len(p.in) > maxSubgraph {
		return nil, usagef("--in has %d bytes; at most %d are allowed", len(p.in), maxSubgraph)
	}
	nodes := strings.Split(p.in, "/")
	for _, node := range nodes {
		if node == "" || !utf8.ValidString(node) || strings.ContainsFunc(node, notPrintable) {
			return nil, usagef("--in %s is not NODE or NODE/NODE", quoted(p.in))
		}
	}
	return nodes, nil
}

// check refuses a checkpoint that cannot be one.
func (p *place) check() error { return checkCheckpoint("--at", p.at) }

// checkCheckpoint refuses what cannot be a checkpoint's id; what names where it was given. "" is for none.
func checkCheckpoint(what, id string) error {
	if len(id) > maxCheckpoint || !utf8.ValidString(id) || strings.ContainsFunc(id, notPrintable) {
		return usagef("%s %s cannot be a checkpoint's id", what, quoted(id))
	}
	return nil
}
