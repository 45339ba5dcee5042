package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"superstep.dev/test/bench/testbed"
)

// table has the figures.
type table struct{ rows [][4]string }

// figure is the median of a sample beside its bar, "" for none, with the lowest and the highest round.
func (t *table) figure(name, unit string, s testbed.Sample, bar string) {
	spread := ""
	if len(s) > 1 {
		spread = number(s.Min()) + " – " + number(s.Max())
	}
	t.rows = append(t.rows, [4]string{name, number(s.Median()) + " " + unit, bar, spread})
}

// stated is one value without a bar.
func (t *table) stated(name, unit string, v float64) { t.figure(name, unit, testbed.Sample{v}, "") }

func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// print writes the table.
func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tmedian\tbar\trounds")
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r[0], r[1], r[2], r[3])
	}
	return w.Flush()
}
