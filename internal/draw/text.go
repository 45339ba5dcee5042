package draw

import (
	"strings"
	"unicode/utf8"

	"superstep.dev/graphadapter/pregel"
)

// textDrawing draws a graph as chains. A chain goes on while there is one way, to a node that only it leads to; where
// there are several, they fan out below each other; what a chain stops at begins a line of its own.
type textDrawing struct {
	strings.Builder
	spec   *pregel.Spec
	ways   map[string][]way
	into   map[string]int
	drawn  map[string]bool // as the beginning or the middle of a chain
	named  map[string]bool // anywhere
	queue  []string
	indent string
}

// Text returns the picture as lines of text: a chain of nodes a line, and what a chain has no room for below.
func Text(spec *pregel.Spec) string {
	var out strings.Builder
	textOf(&out, spec, "")
	return out.String()
}

func textOf(out *strings.Builder, spec *pregel.Spec, indent string) {
	d := &textDrawing{spec: spec, ways: map[string][]way{}, into: map[string]int{}, drawn: map[string]bool{},
		named: map[string]bool{}, indent: indent}
	for _, name := range sources(spec) {
		d.ways[name] = waysOf(spec, name)
		for _, w := range d.ways[name] {
			d.into[w.to]++
		}
	}
	for _, j := range spec.Joins {
		d.into[j.To]++
	}
	d.all()
	d.notes()
	out.WriteString(d.String())
	for _, n := range spec.Nodes {
		if sub, ok := spec.Subgraphs[n.Subgraph]; ok {
			out.WriteString(indent + n.Name + " runs " + sub.Name + ":\n")
			textOf(out, sub, indent+"  ")
		}
	}
}

func (d *textDrawing) all() {
	d.queue = []string{pregel.Start}
	d.drain()
	for _, j := range d.spec.Joins {
		line := strings.Join(j.From, " + ")
		rest := d.follow(&line, []way{{to: j.To}}, false)
		d.write(line, rest)
		d.drain()
	}
	for _, n := range d.spec.Nodes {
		if !n.Handler && !d.drawn[n.Name] && (len(d.ways[n.Name]) > 0 || !d.named[n.Name]) {
			d.queue = append(d.queue, n.Name)
			d.drain()
		}
	}
}

// notes adds what the chains have no room for: error handlers, in the order of the nodes they belong to, and breakpoints.
func (d *textDrawing) notes() {
	var handlers []string
	handled, before, after := map[string][]string{}, []string{}, []string{}
	for _, n := range d.spec.Nodes {
		if h := n.ErrorHandler; h != "" {
			if handled[h] == nil {
				handlers = append(handlers, h)
			}
			handled[h] = append(handled[h], n.Name)
		}
		if stopsAt(d.spec.InterruptBefore, n) {
			before = append(before, n.Name)
		}
		if stopsAt(d.spec.InterruptAfter, n) {
			after = append(after, n.Name)
		}
	}
	for _, h := range handlers {
		d.note("on error of ", handled[h], ": "+h)
	}
	d.note("stops before ", before, "")
	d.note("stops after ", after, "")
}

func (d *textDrawing) note(what string, nodes []string, end string) {
	if len(nodes) > 0 {
		d.WriteString(d.indent + what + strings.Join(nodes, ", ") + end + "\n")
	}
}

func (d *textDrawing) drain() {
	for len(d.queue) > 0 {
		name := d.queue[0]
		d.queue = d.queue[1:]
		if d.drawn[name] {
			continue
		}
		d.drawn[name], d.named[name] = true, true
		line := shown(name)
		ways := d.ways[name]
		if name != pregel.Start && len(ways) == 0 && d.into[name] > 0 {
			continue // it is at the end of other lines
		}
		rest := d.follow(&line, ways, false)
		d.write(line, rest)
	}
}

// follow goes on along single ways and returns the ways at the end, if they are several. Within a fan there is no room
// for another one: the node that it would begin at gets a line of its own.
func (d *textDrawing) follow(line *string, ways []way, inFan bool) []way {
	for len(ways) == 1 {
		w := ways[0]
		*line += arrow(w) + shown(w.to)
		d.named[w.to] = true
		if d.into[w.to] > 1 || d.drawn[w.to] || inFan && len(d.ways[w.to]) > 1 {
			d.queue = append(d.queue, w.to)
			return nil
		}
		d.drawn[w.to] = true
		ways = d.ways[w.to]
	}
	return ways
}

// write writes a line and, when several ways leave its end, one line for each of them.
func (d *textDrawing) write(line string, fan []way) {
	d.WriteString(d.indent + line)
	pad := d.indent + strings.Repeat(" ", utf8.RuneCountInString(line)+2)
	for i, w := range fan {
		corner := "├"
		switch {
		case i == 0:
			corner = "┬"
			d.WriteString(" ─")
		case i == len(fan)-1:
			corner = "└"
		}
		if i > 0 {
			d.WriteString("\n" + pad)
		}
		branch := ""
		d.follow(&branch, []way{w}, true)
		d.WriteString(corner + "─" + strings.TrimPrefix(branch, " "))
	}
	d.WriteByte('\n')
}

func arrow(w way) string {
	if w.conditional {
		return " ⇢ "
	}
	return " → "
}
