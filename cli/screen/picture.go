package screen

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The marks of steps in a picture. No id has one of these characters.
const (
	MarkFinished = "✓"
	MarkRunning  = "▶"
	MarkWaiting  = "·"
	MarkRetry    = "↻"
	MarkFailed   = "✗"
	MarkStopped  = "■"
)

// markColours are those of the marks on a terminal.
var markColours = map[string]string{MarkFinished: Green, MarkRunning: Yellow, MarkRetry: Yellow, MarkFailed: Red, MarkStopped: Red}

// The bounds of a picture, in characters and lines. A larger graph is a list.
const (
	pictureWidth = 100
	pictureRows  = 16
)

// Step is one thing in a [Picture].
type Step struct {
	// ID is its name, and Mark where it stands in one character that no id has.
	ID, Mark string
	// After are the ids of the steps that it waits for, all of which are before it in the list.
	After []string
}

// Draw shows what waits for what: as a [Picture], or as a list when there can be none.
func (s *Screen) Draw(steps []Step) {
	if drawn, ok := Picture(steps); ok {
		for mark, colour := range markColours {
			drawn = strings.ReplaceAll(drawn, mark, s.paint(colour, mark))
		}
		s.Printf("%s", drawn)
		return
	}
	depth := map[string]int{}
	for _, step := range steps {
		for _, d := range step.After {
			depth[step.ID] = max(depth[step.ID], depth[d]+1)
		}
		after := ""
		if len(step.After) > 0 {
			after = "  after " + Clean(List(step.After))
		}
		s.Printf("%s%s %s%s\n", strings.Repeat("  ", depth[step.ID]), Clean(step.ID), s.paint(markColours[step.Mark], step.Mark), after)
	}
}

// Picture draws what waits for what, from left to right; false when that cannot be drawn without lines that would mean
// something else. Dependencies that others imply are left out.
//
//	load ✓ ─┬─ analyse ▶ ─┬─ write ·
//	        └─ check ✓ ───┘
func Picture(steps []Step) (string, bool) {
	p := &canvas{layers: layersOf(steps)}
	for k := range p.layers {
		if k > 0 && !p.connect(p.layers[k-1], p.layers[k]) {
			return "", false
		}
		p.column(p.layers[k], k == len(p.layers)-1)
	}
	text := p.String()
	return text, len(p.lines) <= pictureRows && p.width <= pictureWidth
}

// box is one place of a layer: a step, or the line of one that a later layer waits for.
type box struct {
	id, text string // text is "" for a line
	from     []string
	ends     bool // nothing waits for it
}

// layersOf places every step one layer behind the last one that it waits for.
func layersOf(steps []Step) [][]box {
	after := reduced(steps)
	depth, last := map[string]int{}, map[string]int{}
	deepest := 0
	for _, s := range steps { // in topological order
		for _, d := range after[s.ID] {
			depth[s.ID] = max(depth[s.ID], depth[d]+1)
		}
		for _, d := range after[s.ID] {
			last[d] = max(last[d], depth[s.ID])
		}
		deepest = max(deepest, depth[s.ID])
	}
	layers := make([][]box, deepest+1)
	for _, s := range steps {
		at := depth[s.ID]
		layers[at] = append(layers[at], box{id: s.ID, text: s.ID + " " + s.Mark, from: after[s.ID], ends: last[s.ID] == 0})
		for k := at + 1; k < last[s.ID]; k++ {
			layers[k] = append(layers[k], box{id: s.ID, from: []string{s.ID}})
		}
	}
	for k := 1; k < len(layers); k++ {
		straighten(layers[k-1], layers[k])
	}
	return layers
}

// reduced are the dependencies of each step that no other dependency implies.
func reduced(steps []Step) map[string][]string {
	before, after := map[string]map[string]bool{}, map[string][]string{}
	for _, s := range steps {
		all := map[string]bool{}
		for _, d := range s.After {
			for b := range before[d] {
				all[b] = true
			}
		}
		for _, d := range s.After {
			if before[d] != nil && !all[d] {
				after[s.ID] = append(after[s.ID], d)
			}
		}
		for _, d := range s.After {
			all[d] = true
		}
		before[s.ID] = all
	}
	return after
}

// straighten puts the boxes of a layer beside what they come from.
func straighten(left, right []box) {
	row := map[string]int{}
	for i, b := range left {
		row[b.id] = i
	}
	place := func(b box) (sum float64) {
		for _, d := range b.from {
			sum += float64(row[d])
		}
		return sum / float64(max(len(b.from), 1))
	}
	slices.SortStableFunc(right, func(a, b box) int { return cmp.Compare(place(a), place(b)) })
}

// canvas is a picture as far as it is drawn. All its lines have the same width.
type canvas struct {
	layers [][]box
	lines  []string
	width  int
}

// add puts cells at the right of the lines, one for each; those that are missing are blank.
func (c *canvas) add(cells []string, fill func(row int) string) {
	for len(c.lines) < len(cells) {
		c.lines = append(c.lines, strings.Repeat(" ", c.width))
	}
	wide := 0
	for _, cell := range cells {
		wide = max(wide, utf8.RuneCountInString(cell))
	}
	for i := range c.lines {
		cell, pad := "", " "
		if i < len(cells) {
			cell, pad = cells[i], fill(i)
		}
		c.lines[i] += cell + strings.Repeat(pad, wide-utf8.RuneCountInString(cell))
	}
	c.width += wide
}

// column draws the boxes of a layer.
func (c *canvas) column(layer []box, last bool) {
	cells := make([]string, len(layer))
	for i, b := range layer {
		switch {
		case b.text == "":
			cells[i] = "──"
		case last || b.ends:
			cells[i] = b.text
		default:
			cells[i] = b.text + " "
		}
	}
	c.add(cells, func(row int) string {
		if last || layer[row].ends {
			return " "
		}
		return "─"
	})
}

// String returns the picture, a line each.
func (c *canvas) String() string {
	var b strings.Builder
	for _, line := range c.lines {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// connect draws the lines between two layers. Boxes that come from the same ones share a rail; two rails that would touch,
// or a box that two rails would need, cannot be drawn.
func (c *canvas) connect(left, right []box) bool {
	rails := railsBetween(left, right)
	rows := max(len(left), len(right))
	cells := make([]string, rows)
	for r := range rows {
		var at *rail
		for i := range rails {
			if rails[i].low <= r && r <= rails[i].high {
				if at != nil {
					return false
				}
				at = &rails[i]
			}
		}
		cells[r] = at.cell(r)
		if r < len(right) && right[r].text == "" {
			cells[r] = strings.TrimSuffix(cells[r], " ") + "─"
		}
	}
	c.add(cells, func(int) string { return " " })
	return true
}

// rail is a vertical line: boxes at its left lead to those at its right.
type rail struct {
	from, to  map[int]bool // rows
	low, high int
}

func railsBetween(left, right []box) []rail {
	row := map[string]int{}
	for i, b := range left {
		row[b.id] = i
	}
	var rails []rail
	byKey := map[string]int{}
	for i, b := range right {
		key := strings.Join(slices.Sorted(slices.Values(b.from)), " ")
		at, ok := byKey[key]
		if !ok {
			at = len(rails)
			byKey[key] = at
			rails = append(rails, rail{from: map[int]bool{}, to: map[int]bool{}, low: i, high: i})
		}
		r := &rails[at]
		r.to[i] = true
		for _, d := range b.from {
			r.from[row[d]] = true
			r.low, r.high = min(r.low, row[d]), max(r.high, row[d])
		}
		r.low, r.high = min(r.low, i), max(r.high, i)
	}
	return rails
}

// cell is what a rail, nil for none, looks like in a row.
func (r *rail) cell(row int) string {
	if r == nil {
		return "    "
	}
	const up, down, left, right = 1, 2, 4, 8
	ways := 0
	for i, there := range []bool{row > r.low, row < r.high, r.from[row], r.to[row]} { // up, down, left, right
		if there {
			ways |= 1 << i
		}
	}
	joint := map[int]string{up | down: "│", left | right: "─", up | left: "┘", up | right: "└", down | left: "┐", down | right: "┌",
		up | down | left: "┤", up | down | right: "├", up | left | right: "┴", down | left | right: "┬", up | down | left | right: "┼"}[ways]
	before, behind := " ", "  "
	if r.from[row] {
		before = "─"
	}
	if r.to[row] {
		behind = "─ "
	}
	return before + joint + behind
}
