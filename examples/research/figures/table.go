package figures

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// MaxBirds bounds a table.
const MaxBirds = 100_000

// missing is how the data set says that it does not know.
const missing = "NA"

// Bird is one penguin as it was measured.
type Bird struct {
	// Species is its English name without "Penguin": "Adelie".
	Species string
	// Sex is "FEMALE", "MALE" or "" when it is not known.
	Sex string
	// values are there for what was measured.
	values map[Measure]float64
}

// Value returns what was measured, and false when it was not.
func (b Bird) Value(m Measure) (float64, bool) {
	v, ok := b.values[m]
	return v, ok
}

// Table is the birds in the order of the file.
type Table []Bird

// Problem is something about a line that whoever computes with it should know. It does not keep anybody from doing so.
type Problem struct {
	// Line counts from 1, the header's.
	Line int    `json:"line"`
	Text string `json:"text"`
}

// TableError says that a text is no table of birds.
type TableError struct {
	// Line counts from 1; 0 is the file as a whole.
	Line    int
	Column  string
	Problem string
}

// Error names the place and what is wrong there.
func (e *TableError) Error() string {
	switch {
	case e.Line == 0:
		return "no table of birds: " + e.Problem
	case e.Column == "":
		return fmt.Sprintf("no table of birds: line %d: %s", e.Line, e.Problem)
	}
	return fmt.Sprintf("no table of birds: line %d, column %q: %s", e.Line, e.Column, e.Problem)
}

// The columns besides those of the measures.
const (
	columnSpecies = "Species"
	columnSex     = "Sex"
)

// ReadTable reads CSV with a header line: at most [MaxBirds] birds. Columns that it does not know are left out. It
// returns what is missing in the lines, in their order. What cannot be read is a *[TableError].
func ReadTable(r io.Reader) (Table, []Problem, error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return nil, nil, noTable(err)
	}
	columns, err := columnsOf(header)
	if err != nil {
		return nil, nil, err
	}
	var birds Table
	var problems []Problem
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, noTable(err)
		}
		line, _ := in.FieldPos(0)
		if len(birds) == MaxBirds {
			return nil, nil, &TableError{Line: line, Problem: fmt.Sprintf("more than %d birds", MaxBirds)}
		}
		bird, unknown, err := readBird(line, record, columns)
		if err != nil {
			return nil, nil, err
		}
		birds = append(birds, bird)
		if len(unknown) > 0 {
			problems = append(problems, Problem{line, "not known: " + strings.Join(unknown, ", ")})
		}
	}
	if len(birds) == 0 {
		return nil, nil, &TableError{Problem: "it has a header and no birds"}
	}
	return birds, problems, nil
}

// noTable is an error of the CSV reader.
func noTable(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return &TableError{Problem: "it is empty"}
	case errors.As(err, &parse):
		return &TableError{Line: parse.Line, Problem: parse.Err.Error()}
	}
	return fmt.Errorf("read a table of birds: %w", err)
}

// columnsOf finds the columns by their names in the header.
func columnsOf(header []string) (map[string]int, error) {
	columns := map[string]int{}
	for i, name := range header {
		columns[strings.TrimSpace(name)] = i
	}
	for _, needed := range append([]string{columnSpecies, columnSex}, measureColumns()...) {
		if _, ok := columns[needed]; !ok {
			return nil, &TableError{Line: 1, Column: needed, Problem: "it is not there"}
		}
	}
	return columns, nil
}

// readBird reads one line, and says what it does not tell.
func readBird(line int, record []string, columns map[string]int) (b Bird, unknown []string, err error) {
	b.values = map[Measure]float64{}
	full := strings.TrimSpace(record[columns[columnSpecies]])
	if b.Species = speciesName(full); b.Species == "" || full == missing {
		return b, nil, &TableError{line, columnSpecies, "it is empty"}
	}
	for _, m := range Measures {
		text := strings.TrimSpace(record[columns[m.column()]])
		if text == missing || text == "" {
			unknown = append(unknown, m.Label())
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v > 0 && v < maxValue) {
			return b, nil, &TableError{line, m.column(), fmt.Sprintf("%.40q is no measured value", text)}
		}
		b.values[m] = v
	}
	switch sex := strings.TrimSpace(record[columns[columnSex]]); sex {
	case "FEMALE", "MALE":
		b.Sex = sex
	default:
		unknown = append(unknown, "sex")
	}
	return b, unknown, nil
}

// maxValue is above whatever can be measured of a bird, in millimetres or grams.
const maxValue = 1e6

// speciesName is the English name without what all have in common: "Adelie Penguin (Pygoscelis adeliae)" is "Adelie".
func speciesName(full string) string {
	english, _, _ := strings.Cut(full, "(")
	words := strings.Fields(english)
	if n := len(words); n > 1 && strings.EqualFold(words[n-1], "penguin") {
		words = words[:n-1]
	}
	return strings.Join(words, " ")
}

// Count is how many birds there are of each species.
func (t Table) Count() map[string]int {
	counts := map[string]int{}
	for _, b := range t {
		counts[b.Species]++
	}
	return counts
}

// Species are the names of the species that there are, sorted.
func (t Table) Species() []string { return slices.Sorted(maps.Keys(t.Count())) }

// Of are the birds of a species.
func (t Table) Of(species string) Table {
	var birds Table
	for _, b := range t {
		if b.Species == species {
			birds = append(birds, b)
		}
	}
	return birds
}

// Measured are the values that are known, in the order of the birds.
func (t Table) Measured(m Measure) []float64 {
	var values []float64
	for _, b := range t {
		if v, ok := b.Value(m); ok {
			values = append(values, v)
		}
	}
	return values
}
