package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Table is rows of cells in aligned columns, headed or not.
type Table struct {
	screen *Screen
	rows   [][]string
	// status is the column whose cells say how something stands, shown in colours; -1 for none.
	status int
}

// Table starts a table; without a head it has only rows. A column called STATUS or STATE is shown in colours.
func (s *Screen) Table(head ...string) *Table {
	t := &Table{screen: s, status: slices.IndexFunc(head, func(name string) bool { return name == "STATUS" || name == "STATE" })}
	if len(head) > 0 {
		t.rows = append(t.rows, head)
	}
	return t
}

// Row adds a row. Cells may hold anything; they are cleaned.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Clean(fmt.Sprint(cell))
	}
	t.rows = append(t.rows, row)
}

// Fact adds a row of a name and a value, unless there is nothing to say.
func (t *Table) Fact(name, value string) {
	if value != "" {
		t.Row(name, value)
	}
}

// Print writes the table with each line indented. The last cell of a row takes as much room as there is.
func (t *Table) Print(indent string) {
	const gap = 2
	widths := map[int]int{}
	for _, row := range t.rows {
		for column, cell := range row[:max(len(row)-1, 0)] {
			widths[column] = max(widths[column], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range t.rows {
		line := indent
		for column, cell := range row {
			shown := cell
			if column == t.status {
				shown = t.screen.Status(cell)
			}
			line += shown
			if column < len(row)-1 {
				line += strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell)+gap)
			}
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n") // empty last cells leave blanks behind
	}
	t.screen.Printf("%s", out.String())
}

// Row is the cells of one row.
type Row = []any

// Rows shows things as a table, one a row.
func Rows[T any](s *Screen, all []T, row func(T) Row, head ...string) {
	t := s.Table(head...)
	for _, one := range all {
		t.Row(row(one)...)
	}
	t.Print("")
}

// Section is Rows behind an empty line, and nothing when there are none.
func Section[T any](s *Screen, all []T, row func(T) Row, head ...string) {
	if len(all) > 0 {
		s.Printf("\n")
		Rows(s, all, row, head...)
	}
}

// List joins names.
func List[Name ~string](names []Name) string { return strings.Join(texts(names), ", ") }

// OneOf joins names of which one is meant: "a, b or c".
func OneOf[Name ~string](names []Name) string {
	all := texts(names)
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

func texts[Name ~string](names []Name) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = string(name)
	}
	return out
}

// Duration shows a duration in at most five characters: 31ms, 1.2s, 45s, 3m05s, 2h07m, 12d.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0ms"
	case d < time.Second-500*time.Microsecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	case d < 10*time.Second-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute-500*time.Millisecond:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour-500*time.Millisecond:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// Ago shows how long ago t was, "" for no time.
func (s *Screen) Ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	since := s.Now().Sub(t)
	if since < time.Second { // or ahead: two machines, two clocks
		return "just now"
	}
	return Duration(since) + " ago"
}

// Distance shows how far t is from now; "" for no time.
func (s *Screen) Distance(t time.Time) string {
	if left := t.Sub(s.Now()); left > 0 {
		return "in " + Duration(left)
	}
	return s.Ago(t)
}

// Moment shows t on the reader's clock; "" for no time.
func (s *Screen) Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(s.Now().Location()).Format("2006-01-02 15:04:05")
}

// MomentAgo is Moment, and how long ago that was; "" for no time.
func (s *Screen) MomentAgo(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return s.Moment(t) + ", " + s.Ago(t)
}
