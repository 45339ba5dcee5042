package pregel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxName bounds the names of graphs, nodes and channels, in bytes: activity ids and types are built from them, and
// the strictest stores take 255 bytes for those.
const maxName = 100

// reservedNames may name neither a node nor a channel: they are visible in stored data with a meaning of their own.
var reservedNames = []string{
	Start, End, "__input__", "__interrupt__", "__resume__", "__error__", "__error_source_node__", "__no_writes__",
	tasksChannel, "__return__", "__previous__", "__overwrite__", "__metadata__", "__root__", "__parent__", "__copy__",
	"__pregel_push", "__pregel_pull", "__pregel_ns_writes", "__scheduled__",
}

// checker collects the mistakes of one Spec.
type checker struct {
	spec  *Spec
	nodes map[string]bool
	errs  []error
}

// validate applies LangGraph's compile-time rules (semantics section 4.6). Unreachable nodes are allowed.
func validate(spec *Spec) error {
	c := &checker{spec: spec, nodes: map[string]bool{}}
	c.checkChannels()
	c.checkNodes()
	c.checkEdges()
	c.checkBranches()
	c.checkHandlers()
	c.checkFunction()
	c.checkInterrupts(spec.InterruptBefore)
	c.checkInterrupts(spec.InterruptAfter)
	return errors.Join(c.errs...)
}

func (c *checker) fail(node, format string, args ...any) {
	c.errs = append(c.errs, &CompileError{Graph: c.spec.Name, Node: node, Message: fmt.Sprintf(format, args...)})
}

// exists notes a mistake of a node when there is no node of a name. reserved is one that stands for no node there.
func (c *checker) exists(name, reserved, node, format string, args ...any) {
	if !c.nodes[name] && (name != reserved || name == "") {
		c.fail(node, format+", but there is no such node", args...)
	}
}

// CheckName says what is wrong with a graph's or node's name, "" if nothing is. Names are parts of activity types
// ("graph.node"), namespaces and keys, so the separators of those are refused.
func CheckName(name string) string {
	switch {
	case name == "":
		return "a name must not be empty"
	case len(name) > maxName:
		return fmt.Sprintf("a name has at most %d bytes", maxName)
	case slices.Contains(reservedNames, name):
		return fmt.Sprintf("the name %q is reserved", name)
	}
	for _, r := range name {
		if r < ' ' || r == 0x7f || strings.ContainsRune(".|:/!", r) {
			return fmt.Sprintf("the name %q contains %q, which separates names in stored data", name, r)
		}
	}
	return ""
}

func (c *checker) checkChannels() {
	seen := map[string]bool{}
	for _, ch := range c.spec.Channels {
		if ch.Name == "" || len(ch.Name) > maxName || slices.Contains(reservedNames, ch.Name) ||
			strings.HasPrefix(ch.Name, triggerPrefix) || strings.HasPrefix(ch.Name, joinPrefix) {
			c.fail("", "the channel name %q is empty, too long or reserved", ch.Name)
		}
		if seen[ch.Name] {
			c.fail("", "the channel %q is declared twice", ch.Name)
		}
		seen[ch.Name] = true
		if _, known := ruleOf[ch.Kind]; !known {
			c.fail("", "the channel %q has the unknown kind %q", ch.Name, ch.Kind)
		}
	}
	for _, names := range [][]string{c.spec.Input, c.spec.Output} {
		for _, name := range names {
			if !seen[name] {
				c.fail("", "the input or output schema names the unknown channel %q", name)
			}
		}
	}
	for _, n := range c.spec.Nodes {
		for _, name := range n.Reads {
			if !seen[name] {
				c.fail(n.Name, "it reads the unknown channel %q", name)
			}
		}
	}
}

func (c *checker) checkNodes() {
	for _, name := range sortedKeys(c.spec.Subgraphs) {
		if c.spec.Subgraphs[name] == nil {
			c.fail("", "the subgraph %q is empty", name)
		} else if c.spec.Subgraphs[name].Function {
			c.fail("", "the subgraph %q is a function, which reads no state: call it from a node's code", name)
		}
	}
	for _, n := range c.spec.Nodes {
		if problem := CheckName(n.Name); problem != "" {
			c.fail(n.Name, "%s", problem)
		}
		if c.nodes[n.Name] {
			c.fail(n.Name, "it is added twice")
		}
		c.nodes[n.Name] = true
		if _, ok := c.spec.Subgraphs[n.Subgraph]; n.Subgraph != "" && !ok {
			c.fail(n.Name, "it runs the unknown subgraph %q", n.Subgraph)
		}
	}
}

func (c *checker) checkEdges() {
	entry := false
	for _, e := range c.spec.Edges {
		entry = entry || e.From == Start
		c.exists(e.From, Start, e.From, "an edge starts at it")
		c.exists(e.To, End, e.To, "an edge from %q ends at it", e.From)
	}
	for _, j := range c.spec.Joins {
		if len(j.From) == 0 {
			c.fail(j.To, "a join to it has no sources")
		}
		for i, from := range j.From {
			c.exists(from, "", from, "a join starts at it")
			if slices.Contains(j.From[:i], from) {
				c.fail(from, "a join names it twice")
			}
		}
		c.exists(j.To, End, j.To, "a join ends at it")
	}
	for _, b := range c.spec.Branches {
		entry = entry || b.From == Start
	}
	if !entry {
		c.fail("", "it has no entry: add an edge from START to the first node")
	}
}

func (c *checker) checkBranches() {
	for _, b := range c.spec.Branches {
		c.exists(b.From, Start, b.From, "a conditional edge starts at it")
		targets := slices.Clone(b.Targets)
		for _, label := range sortedKeys(b.Labels) {
			targets = append(targets, b.Labels[label])
		}
		for _, target := range targets {
			c.exists(target, End, b.From, "its conditional edge names the target %q", target)
		}
	}
}

func (c *checker) checkInterrupts(names []string) {
	for _, name := range names {
		c.exists(name, All, name, "an interrupt list names it")
	}
}

// checkHandlers holds error handlers to what they are for: a failure is all that leads to one, and what it returns all
// that leads from it. Several nodes may share one.
func (c *checker) checkHandlers() {
	handlers := map[string]bool{}
	for _, n := range c.spec.Nodes {
		handlers[n.Name] = handlers[n.Name] || n.Handler
		if n.Handler && (n.Defer || n.Subgraph != "" || n.ErrorHandler != "") {
			c.fail(n.Name, "it is an error handler, which cannot be deferred, run a subgraph or have a handler of its own")
		}
	}
	for _, n := range c.spec.Nodes {
		if n.ErrorHandler != "" && !handlers[n.ErrorHandler] {
			c.fail(n.Name, "its error handler %q is no node that handles errors", n.ErrorHandler)
		}
	}
	c.checkWays(handlers)
	for _, name := range append(slices.Clone(c.spec.InterruptBefore), c.spec.InterruptAfter...) {
		if handlers[name] {
			c.fail(name, "it is an error handler, which no interrupt list can name: name the node that fails")
		}
	}
}

// checkWays refuses edges, joins and branches that lead to or from an error handler.
func (c *checker) checkWays(handlers map[string]bool) {
	var ends []string
	for _, e := range c.spec.Edges {
		ends = append(ends, e.From, e.To)
	}
	for _, j := range c.spec.Joins {
		ends = append(append(ends, j.From...), j.To)
	}
	for _, b := range c.spec.Branches {
		ends = append(append(ends, b.From), b.Targets...)
		for _, label := range sortedKeys(b.Labels) {
			ends = append(ends, b.Labels[label])
		}
	}
	refused := map[string]bool{}
	for _, name := range ends {
		if handlers[name] && !refused[name] {
			refused[name] = true
			c.fail(name, "it is an error handler, so no edge, join or branch leads to it or from it: let it return where to go")
		}
	}
}

// checkFunction holds a function's Spec to its form: what goes on from its one node would not be reached by its input.
func (c *checker) checkFunction() {
	if !c.spec.Function {
		return
	}
	want := FunctionSpec(c.spec.Name, NodeSpec{})
	same := len(c.spec.Nodes) == 1 && len(c.spec.Edges) == 1 && len(c.spec.Branches)+len(c.spec.Joins) == 0 &&
		len(c.spec.Channels) == len(want.Channels) && len(c.spec.Input) == 1 && len(c.spec.Output) == 1 &&
		c.spec.Input[0] == FunctionInput && c.spec.Output[0] == FunctionOutput
	for i := range want.Channels {
		same = same && c.spec.Channels[i].Name == want.Channels[i].Name && c.spec.Channels[i].Kind == want.Channels[i].Kind
	}
	if !same {
		c.fail("", "it says that it is one function, but does not have the channels, the node and the edge of one")
	}
}
