package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"superstep.dev/examples/research/data"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/job"
)

// onceEach is nil if each attempt was started once and did its work once, whatever was killed.
func (a account) onceEach() error {
	var wrong []error
	for _, one := range a.attempts {
		thread := job.AttemptThread(id, one.ID, one.number)
		finished := 0
		for _, t := range one.tasks {
			if !t.Asked {
				finished++
			}
		}
		if times := a.started[thread]; times != 1 || finished != 1 {
			wrong = append(wrong, fmt.Errorf("attempt %d of %s was started %d times and finished %d times", one.number, one.ID, times, finished))
		}
	}
	if len(a.started) != len(a.attempts) {
		wrong = append(wrong, fmt.Errorf("the leader started %d attempts, and its job has %d", len(a.started), len(a.attempts)))
	}
	return errors.Join(wrong...)
}

// oneReport is nil if the job finished, and its answer is what was published, in one call.
func (a account) oneReport() error {
	if a.answer.View.Status != job.StatusFinished {
		return fmt.Errorf("the job is %s: %s", a.answer.View.Status, a.answer.View.Reason)
	}
	if len(a.reports) != 1 {
		return fmt.Errorf("%d reports were published, not one", len(a.reports))
	}
	for name, text := range a.reports {
		if strings.TrimSpace(text) != a.answer.Text {
			return fmt.Errorf("the report in %s is not the answer of the job", name)
		}
	}
	sent := 0
	for _, one := range a.attempts {
		for _, t := range one.tasks {
			for _, e := range named(t.Ledger, "report.publish") {
				if e.Kind == ledger.KindEffect {
					sent += e.Attempts
				}
			}
		}
	}
	if sent != 1 {
		return fmt.Errorf("the report was sent %d times, not once", sent)
	}
	return nil
}

// asPlanned is nil if what the rules plan went as it must: one subjob became three, and two of them were sent back. A
// model may plan otherwise.
func (d *researching) asPlanned(a account) error {
	if model() {
		return nil
	}
	replaced, twice := 0, 0
	for _, s := range a.answer.View.SubJobs {
		if s.Legacy {
			replaced++
		}
		if s.Expert == "analyst" && s.Attempts == 2 {
			twice++
		}
	}
	if replaced != 1 || twice != 2 {
		return fmt.Errorf("%d subjobs were planned again and %d analysts sent back, not 1 and 2", replaced, twice)
	}
	return nil
}

// mean is what a report has to say of one measure of a species.
type mean struct {
	section, species string
	n                int
	mean             float64
}

// direct computes the means from the file, without the code that is on trial.
func direct() ([]mean, error) {
	lines, err := csv.NewReader(bytes.NewReader(data.Penguins)).ReadAll()
	if err != nil {
		return nil, err
	}
	var means []mean
	for _, c := range []struct{ column, section string }{{"Culmen Length (mm)", "Bill length (mm)"}, {"Culmen Depth (mm)", "Bill depth (mm)"},
		{"Flipper Length (mm)", "Flipper length (mm)"}, {"Body Mass (g)", "Body mass (g)"}} {
		for _, species := range []string{"Adelie", "Chinstrap", "Gentoo"} {
			m := mean{section: c.section, species: species}
			for _, line := range lines[1:] {
				row := map[string]string{}
				for i, name := range lines[0] {
					row[name] = line[i]
				}
				if v, err := strconv.ParseFloat(row[c.column], 64); err == nil && strings.HasPrefix(row["Species"], species+" ") {
					m.n, m.mean = m.n+1, m.mean+v
				}
			}
			m.mean /= float64(m.n)
			means = append(means, m)
		}
	}
	return means, nil
}

// rightFigures is nil if a report has all these means, each in its section.
func rightFigures(report string, want []mean) error {
	sections := map[string]string{}
	for _, section := range strings.Split(report, "\n## ")[1:] {
		title, rows, _ := strings.Cut(section, "\n")
		sections[title] = rows
	}
	var wrong []error
	for _, m := range want {
		if row := fmt.Sprintf("| %s | %d | %.2f | ", m.species, m.n, m.mean); !strings.Contains(sections[m.section], row) {
			wrong = append(wrong, fmt.Errorf("the report does not say under %q that %q", m.section, row))
		}
	}
	return errors.Join(wrong...)
}
