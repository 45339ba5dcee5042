package figures

import (
	"fmt"
	"math"
)

// Finding is what is wrong with a figure.
type Finding struct {
	Species string  `json:"species"`
	Measure Measure `json:"measure"`
	Text    string  `json:"text"`
}

// tolerance is by how much a mean may differ from the one that the birds have, as a part of it: more than rounding does,
// and less than one bird more or less.
const tolerance = 1e-9

// Check compares an analysis with the birds, figure by figure, and returns what is wrong with it. It goes another way than
// [Describe]: it looks for the mean from which the measured birds deviate by nothing in total.
func Check(birds Table, a Analysis) []Finding {
	of := birds.Of(a.Species)
	if len(of) == 0 {
		return []Finding{{a.Species, "", fmt.Sprintf("there is no species %q in the data", a.Species)}}
	}
	var wrong []Finding
	reported := map[Measure]bool{}
	for _, f := range a.Figures {
		reported[f.Measure] = true
		if text := checkFigure(of.Measured(f.Measure), f); text != "" {
			wrong = append(wrong, Finding{a.Species, f.Measure, text})
		}
	}
	for _, m := range Measures {
		if !reported[m] && len(of.Measured(m)) > 0 {
			wrong = append(wrong, Finding{a.Species, m, "it was measured and is not reported"})
		}
	}
	return wrong
}

// checkFigure says what is wrong with a figure, "" for nothing.
func checkFigure(values []float64, f Figure) string {
	if len(values) == 0 {
		return "nothing of that kind was measured"
	}
	off := 0.0
	for _, v := range values {
		off += v - f.Mean
	}
	truth := f.Mean + off/float64(len(values))
	switch {
	case f.N != len(values):
		return fmt.Sprintf("the mean %.2f is taken over %d birds, and %d of them were measured: over those it is %.2f",
			f.Mean, f.N, len(values), truth)
	case !(math.Abs(f.Mean-truth) <= tolerance*math.Abs(truth)):
		return fmt.Sprintf("the mean of %d birds is %.2f, not %.2f", f.N, truth, f.Mean)
	case !(f.Low <= f.Mean && f.Mean <= f.High):
		return fmt.Sprintf("the mean %.2f is not between its bounds %.2f and %.2f", f.Mean, f.Low, f.High)
	}
	return ""
}
