package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"superstep.dev/test/bench/testbed"
)

// figure is one row: a value, usually a median, and the bar it is held to.
type figure struct {
	Name     string  `json:"name"`
	Compares string  `json:"compares"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	// Bar is the highest value that passes; 0 means that the figure only informs.
	Bar float64 `json:"bar,omitempty"`
	// Rounds is what Value was taken from.
	Rounds testbed.Sample `json:"rounds"`
	// Notes are printed below the row.
	Notes []string `json:"notes,omitempty"`
	// Details are the samples behind the notes, by what they are.
	Details map[string]testbed.Sample `json:"details,omitempty"`
}

func (f figure) passed() bool { return f.Bar > 0 && f.Value <= f.Bar }
func (f figure) missed() bool { return f.Bar > 0 && !(f.Value <= f.Bar) } // NaN misses

func (f figure) verdict() string {
	switch {
	case f.passed():
		return "PASS"
	case f.missed():
		return "FAIL"
	}
	return "-"
}

// quantity prints a value with the figure's unit.
func (f figure) quantity(v float64) string { return fmt.Sprintf("%.3g %s", v, f.Unit) }

func (f figure) bar() string {
	if f.Bar == 0 {
		return "-"
	}
	return "<= " + f.quantity(f.Bar)
}

const rowFormat = "%-28s %-12s %-12s %-22s %s\n"

func printHead(w io.Writer) { fmt.Fprintf(w, rowFormat, "figure", "value", "bar", "spread", "") }

func printFigures(w io.Writer, figures []figure) {
	for _, f := range figures {
		spread := fmt.Sprintf("%.3g ... %.3g (%d)", f.Rounds.Min(), f.Rounds.Max(), len(f.Rounds))
		fmt.Fprintf(w, rowFormat, f.Name, f.quantity(f.Value), f.bar(), spread, f.verdict())
		fmt.Fprintf(w, "    %s\n", f.Compares)
		for _, note := range f.Notes {
			fmt.Fprintf(w, "    %s\n", note)
		}
	}
}

func printSummary(w io.Writer, figures []figure) {
	passed, missed := count(figures, figure.passed), count(figures, figure.missed)
	verdict := "PASS"
	if missed > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s: %d of %d bars met, %d figures\n", verdict, passed, passed+missed, len(figures))
}

func printList(w io.Writer, chosen []measurement) {
	for _, m := range chosen {
		fmt.Fprintf(w, "%-20s %s\n", m.name, m.about)
	}
}

func count(figures []figure, is func(figure) bool) (n int) {
	for _, f := range figures {
		if is(f) {
			n++
		}
	}
	return n
}

// report is what the JSON file holds.
type report struct {
	At      time.Time `json:"at"`
	Go      string    `json:"go"`
	CPUs    int       `json:"cpus"`
	Rounds  int       `json:"rounds,omitempty"`
	Figures []figure  `json:"figures"`
}

func newReport(o options) *report {
	return &report{At: time.Now().UTC(), Go: runtime.Version(), CPUs: runtime.NumCPU(), Rounds: o.rounds}
}

// write stores the report; path "" stores nothing.
func (r *report) write(path string) error {
	if path == "" {
		return nil
	}
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("the figures above were not stored: %w", err)
	}
	return os.WriteFile(path, append(out, '\n'), 0o644)
}
