package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// table is rows of cells in aligned columns, headed or not.
type table struct {
	rows [][]string
	// statuses is the column whose cells say how something stands, shown in colours; -1 for none.
	statuses int
}

// newTable starts a table; without a head it has only rows.
func newTable(head ...string) *table {
	t := &table{statuses: -1}
	if len(head) > 0 {
		t.rows = append(t.rows, head)
	}
	return t
}

// statusTable starts a table whose column called STATUS or STATE is shown in colours on a terminal.
func (a *app) statusTable(head ...string) *table {
	t := newTable(head...)
	for i, name := range head {
		if a.colours && (name == "STATUS" || name == "STATE") {
			t.statuses = i
		}
	}
	return t
}

// row adds a row. Cells may hold anything; they are cleaned.
func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// writeTo writes the table with each line indented. The last cell of a row takes as much room as there is.
func (t *table) writeTo(w io.Writer, indent string) error {
	var widths []int
	cells := make([][]string, len(t.rows))
	for i, row := range t.rows {
		for column, cell := range row {
			cell = clean(cell)
			cells[i] = append(cells[i], cell)
			if column == len(widths) {
				widths = append(widths, 0)
			}
			if column < len(row)-1 {
				widths[column] = max(widths[column], utf8.RuneCountInString(cell))
			}
		}
	}
	var out strings.Builder
	for _, row := range cells {
		out.WriteString(strings.TrimRight(indent+t.line(row, widths), " ") + "\n") // empty last cells leave blanks behind
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// line puts the cells of a row at their places.
func (t *table) line(row []string, widths []int) string {
	const gap = 2
	var line strings.Builder
	for column, cell := range row {
		line.WriteString(paint(column == t.statuses, cell))
		if column < len(row)-1 {
			line.WriteString(strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell)+gap))
		}
	}
	return line.String()
}
