package cli

import (
	"bytes"
	"io"
	"strings"
	"text/tabwriter"
)

// table is rows of cells in aligned columns, headed or not.
type table struct{ rows [][]string }

// newTable starts a table; without a head it has only rows.
func newTable(head ...string) *table {
	t := &table{}
	if len(head) > 0 {
		t.rows = append(t.rows, head)
	}
	return t
}

// row adds a row. Cells may hold anything; they are cleaned.
func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// writeTo writes the table with each line indented.
func (t *table) writeTo(w io.Writer, indent string) error {
	var aligned bytes.Buffer
	tw := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = clean(cell)
		}
		io.WriteString(tw, strings.Join(cells, "\t")+"\n") // into memory
	}
	tw.Flush()
	var out strings.Builder
	for line := range strings.Lines(aligned.String()) {
		out.WriteString(strings.TrimRight(indent+line, " \n") + "\n") // empty last cells leave blanks behind
	}
	_, err := io.WriteString(w, out.String())
	return err
}
