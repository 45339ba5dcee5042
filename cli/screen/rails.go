package screen

import (
	"slices"
	"strings"
)

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
