// Package draw makes pictures of graphs: text for a terminal or a details page, Mermaid for a web page, DOT for Graphviz. It
// knows a graph's Spec and nothing else, so workflows may use it: the same Spec gives the same picture everywhere.
//
// Conditional edges are dashed (⇢ in text); those that declare no target lead to "any". Ways that a node takes by a Command
// are not part of a Spec and not shown.
package draw

import (
	"fmt"
	"slices"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// anyTarget stands for the targets of a conditional edge that declares none.
const anyTarget = "any"

// way is one way out of a node.
type way struct {
	to          string
	conditional bool
}

// waysOf returns the ways out of a node, each once, those of joins left out.
func waysOf(spec *pregel.Spec, node string) []way {
	var out []way
	add := func(w way) {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	for _, e := range spec.Edges {
		if e.From == node {
			add(way{to: e.To})
		}
	}
	for _, b := range spec.BranchesOf(node) {
		for _, label := range labelsOf(b) {
			add(way{to: b.Labels[label], conditional: true})
		}
		for _, to := range b.Targets {
			add(way{to: to, conditional: true})
		}
		if len(b.Labels) == 0 && len(b.Targets) == 0 {
			add(way{to: anyTarget, conditional: true})
		}
	}
	return out
}

// labelsOf returns the labels of a conditional edge in order.
func labelsOf(b pregel.Branch) []string {
	labels := make([]string, 0, len(b.Labels))
	//workflowcheck:ignore The labels are sorted before anyone sees them.
	for label := range b.Labels {
		labels = append(labels, label)
	}
	slices.Sort(labels)
	return labels
}

// shown is a node's name for people.
func shown(name string) string {
	switch name {
	case pregel.Start:
		return "START"
	case pregel.End:
		return "END"
	}
	return name
}

// sources returns the entry and all nodes but error handlers, in the order of the Spec.
func sources(spec *pregel.Spec) []string {
	out := []string{pregel.Start}
	for _, n := range spec.Nodes {
		if !n.Handler {
			out = append(out, n.Name)
		}
	}
	return out
}

// titleOf returns a node's name with what is special about it.
func titleOf(spec *pregel.Spec, n pregel.NodeSpec) string {
	var marks []string
	if n.Defer {
		marks = append(marks, "deferred")
	}
	if stopsAt(spec.InterruptBefore, n) {
		marks = append(marks, "stops before")
	}
	if stopsAt(spec.InterruptAfter, n) {
		marks = append(marks, "stops after")
	}
	if len(marks) == 0 {
		return n.Name
	}
	return n.Name + " (" + strings.Join(marks, ", ") + ")"
}

func stopsAt(breakpoints []string, n pregel.NodeSpec) bool {
	return !n.Handler && (slices.Contains(breakpoints, pregel.All) || slices.Contains(breakpoints, n.Name))
}

// pen writes one of the two graph languages. Ids are numbered: names may hold anything.
type pen struct {
	strings.Builder
	next int
	node func(id, name string, round bool) string
	edge func(from, to string, dashed bool) string
	// fault leads to an error handler.
	fault func(from, to string) string
	open  func(id, title string) string
	end   string
}

func (p *pen) line(depth int, s string) {
	p.WriteString(strings.Repeat("  ", depth))
	p.WriteString(s)
	p.WriteByte('\n')
}

func (p *pen) id() string {
	p.next++
	return fmt.Sprintf("n%d", p.next)
}

// draw writes a graph's nodes and edges, each subgraph as a cluster beside the node that runs it.
func (p *pen) draw(spec *pregel.Spec, depth int) {
	ids := map[string]string{}
	declare := func(name, title string, round bool) {
		ids[name] = p.id()
		p.line(depth, p.node(ids[name], title, round))
	}
	declare(pregel.Start, shown(pregel.Start), true)
	for _, n := range spec.Nodes {
		declare(n.Name, titleOf(spec, n), false)
		if sub, ok := spec.Subgraphs[n.Subgraph]; ok {
			cluster := p.id()
			p.line(depth, p.open(cluster, n.Name+": "+sub.Name))
			p.draw(sub, depth+1)
			p.line(depth, p.end)
		}
	}
	declare(pregel.End, shown(pregel.End), true)
	for _, from := range sources(spec) {
		for _, w := range waysOf(spec, from) {
			if _, ok := ids[w.to]; !ok {
				declare(w.to, w.to, true)
			}
			p.line(depth, p.edge(ids[from], ids[w.to], w.conditional))
		}
	}
	for _, n := range spec.Nodes {
		if n.ErrorHandler != "" {
			p.line(depth, p.fault(ids[n.Name], ids[n.ErrorHandler]))
		}
	}
	for _, j := range spec.Joins {
		at := p.id()
		p.line(depth, p.node(at, "all of", true))
		for _, from := range j.From {
			p.line(depth, p.edge(ids[from], at, false))
		}
		p.line(depth, p.edge(at, ids[j.To], false))
	}
}

// Mermaid returns the picture as a Mermaid flowchart.
func Mermaid(spec *pregel.Spec) string {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, "#quot;") + `"` }
	p := &pen{
		node: func(id, name string, round bool) string {
			if round {
				return id + "([" + quote(name) + "])"
			}
			return id + "[" + quote(name) + "]"
		},
		edge: func(from, to string, dashed bool) string {
			if dashed {
				return from + " -.-> " + to
			}
			return from + " --> " + to
		},
		fault: func(from, to string) string { return from + " -. on error .-> " + to },
		open:  func(id, title string) string { return "subgraph " + id + " [" + quote(title) + "]" },
		end:   "end",
	}
	p.line(0, "flowchart TD")
	p.draw(spec, 1)
	return p.String()
}

// DOT returns the picture in the language of Graphviz.
func DOT(spec *pregel.Spec) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	p := &pen{
		node: func(id, name string, round bool) string {
			shape := "box"
			if round {
				shape = "oval"
			}
			return fmt.Sprintf("%s [label=%s shape=%s];", id, quote(name), shape)
		},
		edge: func(from, to string, dashed bool) string {
			if dashed {
				return from + " -> " + to + " [style=dashed];"
			}
			return from + " -> " + to + ";"
		},
		fault: func(from, to string) string { return from + " -> " + to + ` [style=dotted label="on error"];` },
		open:  func(id, title string) string { return fmt.Sprintf("subgraph cluster_%s { label=%s;", id, quote(title)) },
		end:   "}",
	}
	p.line(0, "digraph "+quote(spec.Name)+" {")
	p.draw(spec, 1)
	p.line(0, "}")
	return p.String()
}
