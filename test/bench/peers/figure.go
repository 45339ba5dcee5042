package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// The figure's measures, in pixels.
const (
	figureWidth = 860
	figureLeft  = 130 // of the scale
	figureRight = 830
	figureTop   = 64
	lineHeight  = 18
)

// compared are the figure's two marks.
var compared = []struct {
	of     func(row) *ratio
	name   string
	colour string
	above  float64 // of the row's middle
}{
	{func(r row) *ratio { return r.Postgres }, "LangGraph with PostgreSQL, in the same mode", "#1f6feb", 3},
	{func(r row) *ratio { return r.Floor }, "workflows written by hand, on the same server", "#d1730b", -3},
}

// drawn are the rows of those who call from another process than the worker: with Thread.Invoke, or with a Client where nobody
// does that.
func drawn(all []row) (rows []row) {
	threads := map[string]bool{}
	for _, one := range all {
		threads[one.Workload] = threads[one.Workload] || strings.HasSuffix(one.Way, " thread")
	}
	for _, one := range all {
		caller := " client"
		if threads[one.Workload] {
			caller = " thread"
		}
		if strings.HasPrefix(one.Way, "superstep ") && strings.HasSuffix(one.Way, caller) && (one.Postgres != nil || one.Floor != nil) {
			rows = append(rows, one)
		}
	}
	return rows
}

// draw is a picture of the ratios, as SVG: a mark for the median, a line for the spread.
func draw(r report) []byte {
	rows := drawn(r.Rows)
	low, high := decades(rows)
	at := func(v float64) float64 {
		return figureLeft + (math.Log10(v)-low)/(high-low)*(figureRight-figureLeft)
	}
	var workloads []string
	for _, one := range rows {
		if !slices.Contains(workloads, one.Workload) {
			workloads = append(workloads, one.Workload)
		}
	}
	height := figureTop + lineHeight*(len(rows)+len(workloads)) + 40
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n",
		figureWidth, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	label := func(x, y float64, anchor, style, text string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(text))
	}
	label(16, 22, "start", `font-weight="bold"`, "How long users of Superstep wait, against users of")
	x := 16.0
	for _, c := range compared {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="40" r="4" fill="%s"/>`+"\n", x+4, c.colour)
		label(x+14, 44, "start", "", c.name)
		x += 320
	}
	label(x, 44, "start", `fill="#555555"`, "left of 1 is faster")
	bottom := float64(height - 34)
	for d := low; d <= high; d++ {
		for _, v := range []float64{1, 2, 5} {
			v *= math.Pow(10, d)
			if at(v) > figureRight+0.5 {
				continue
			}
			colour, text := "#e4e4e4", fmt.Sprintf("%g", v)
			if v == 1 {
				colour = "#555555"
			}
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%[1]f" y1="%d" y2="%.1f" stroke="%s"/>`+"\n", at(v), figureTop-8, bottom, colour)
			label(at(v), bottom+16, "middle", `fill="#555555"`, text)
		}
	}
	y, last := float64(figureTop), ""
	for _, one := range rows {
		if one.Workload != last {
			last = one.Workload
			y += lineHeight
			label(16, y, "start", `font-weight="bold"`, last)
		}
		y += lineHeight
		label(28, y, "start", "", strings.TrimPrefix(one.Way, "superstep "))
		for _, c := range compared {
			if q := c.of(one); q != nil {
				fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%[3]f" stroke="%s" stroke-width="2" opacity="0.45"/>`+"\n",
					at(q.Low), at(q.High), y-4-c.above, c.colour)
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"><title>%s</title></circle>`+"\n", at(q.Median), y-4-c.above, c.colour,
					html.EscapeString(one.Way+": "+q.String()+" of "+q.To))
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// decades are the powers of ten between which all ratios lie, with 1 among them.
func decades(rows []row) (low, high float64) {
	for _, one := range rows {
		for _, c := range compared {
			if q := c.of(one); q != nil {
				low, high = min(low, math.Floor(math.Log10(q.Low))), max(high, math.Ceil(math.Log10(q.High)))
			}
		}
	}
	return low, max(high, low+1)
}
