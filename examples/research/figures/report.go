package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// speciesFigure is a figure with whose it is.
type speciesFigure struct {
	species string
	Figure
}

// ofMeasure are the figures of one measure, in the order of the analyses.
func ofMeasure(analyses []Analysis, m Measure) []speciesFigure {
	var all []speciesFigure
	for _, a := range analyses {
		for _, f := range a.Figures {
			if f.Measure == m {
				all = append(all, speciesFigure{a.Species, f})
			}
		}
	}
	return all
}

// Separation is how far the species are apart in a measure: the largest difference of two means, in standard deviations
// within the species. It is 0 with fewer than two species.
func Separation(analyses []Analysis, m Measure) float64 {
	low, high, variance := math.Inf(1), math.Inf(-1), 0.0
	all := ofMeasure(analyses, m)
	for _, f := range all {
		low, high = min(low, f.Mean), max(high, f.Mean)
		variance += f.SD * f.SD
	}
	if len(all) < 2 || variance == 0 {
		return 0
	}
	return (high - low) / math.Sqrt(variance/float64(len(all)))
}

// BySeparation are the measures, the one that tells the species apart best first.
func BySeparation(analyses []Analysis) []Measure {
	measures := slices.Clone(Measures)
	slices.SortStableFunc(measures, func(a, b Measure) int {
		return cmp.Compare(Separation(analyses, b), Separation(analyses, a))
	})
	return measures
}

// Report writes the analyses down as Markdown: the leading measure first, then the others in the order of [Measures]. The
// species are sorted by name.
func Report(title string, analyses []Analysis, lead Measure) string {
	analyses = slices.Clone(analyses)
	slices.SortFunc(analyses, func(a, b Analysis) int { return cmp.Compare(a.Species, b.Species) })
	others := slices.DeleteFunc(slices.Clone(Measures), func(m Measure) bool { return m == lead })
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\n%s\n", title, summary(analyses, lead))
	for _, m := range append([]Measure{lead}, others...) {
		fmt.Fprintf(&text, "\n## %s (%s)\n\n| species | n | mean | sd | 95%% interval of the mean |\n|---|--:|--:|--:|--:|\n",
			sentence(m.Label()), m.Unit())
		for _, f := range ofMeasure(analyses, m) {
			fmt.Fprintf(&text, "| %s | %d | %.2f | %.2f | %.2f – %.2f |\n", f.species, f.N, f.Mean, f.SD, f.Low, f.High)
		}
	}
	return text.String()
}

// summary says in a sentence who has most and who has least.
func summary(analyses []Analysis, m Measure) string {
	all := ofMeasure(analyses, m)
	if len(all) == 0 {
		return fmt.Sprintf("Nobody measured the %s.", m.Label())
	}
	slices.SortStableFunc(all, func(a, b speciesFigure) int { return cmp.Compare(b.Mean, a.Mean) })
	most, least := all[0], all[len(all)-1]
	if len(all) == 1 {
		return fmt.Sprintf("%s has a mean %s of %.2f %s (n = %d).", most.species, m.Label(), most.Mean, m.Unit(), most.N)
	}
	return fmt.Sprintf("Largest mean %s: %s, %.2f %s (n = %d). Smallest: %s, %.2f %s (n = %d).",
		m.Label(), most.species, most.Mean, m.Unit(), most.N, least.species, least.Mean, m.Unit(), least.N)
}

func sentence(label string) string { return strings.ToUpper(label[:1]) + label[1:] }
