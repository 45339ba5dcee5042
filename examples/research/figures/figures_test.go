package figures_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/research/data"
	"superstep.dev/examples/research/figures"
)

func penguins(t *testing.T) (figures.Table, []figures.Problem) {
	t.Helper()
	birds, problems, err := figures.ReadTable(bytes.NewReader(data.Penguins))
	require.NoError(t, err)
	return birds, problems
}

func describe(t *testing.T, birds figures.Table, species string, how figures.Method) figures.Analysis {
	t.Helper()
	a := figures.Analysis{Species: species, Method: how, Birds: len(birds.Of(species))}
	for _, m := range figures.Measures {
		f, err := figures.Describe(t.Context(), birds, species, m, how, 1000)
		require.NoError(t, err)
		a.Figures = append(a.Figures, f)
	}
	return a
}

func TestReadTable(t *testing.T) {
	birds, problems := penguins(t)
	require.Len(t, birds, 344)
	require.Equal(t, map[string]int{"Adelie": 152, "Chinstrap": 68, "Gentoo": 124}, birds.Count())
	require.Equal(t, []string{"Adelie", "Chinstrap", "Gentoo"}, birds.Species())
	require.Len(t, problems, 11, "of eleven birds the sex is not known; two of them were not measured either")
	require.Equal(t, figures.Problem{Line: 5, Text: "not known: bill length, bill depth, flipper length, body mass, sex"}, problems[0])
	mass, ok := birds[0].Value(figures.BodyMass)
	require.True(t, ok)
	require.Equal(t, 3750.0, mass)
	_, ok = birds[3].Value(figures.BodyMass)
	require.False(t, ok)
}

func TestReadTableRefuses(t *testing.T) {
	const header = "Species,Sex,Culmen Length (mm),Culmen Depth (mm),Flipper Length (mm),Body Mass (g)\n"
	for name, c := range map[string]struct {
		text string
		want figures.TableError
	}{
		"nothing":         {"", figures.TableError{Problem: "it is empty"}},
		"no birds":        {header, figures.TableError{Problem: "it has a header and no birds"}},
		"another header":  {"a,b\n1,2\n", figures.TableError{Line: 1, Column: "Species", Problem: "it is not there"}},
		"a short line":    {header + "Gentoo,MALE\n", figures.TableError{Line: 2, Problem: "wrong number of fields"}},
		"an open quote":   {header + "\"Gentoo,MALE,1,2,3,4\n", figures.TableError{Line: 2, Problem: `extraneous or missing " in quoted-field`}},
		"no species":      {header + "NA,MALE,1,2,3,4\n", figures.TableError{Line: 2, Column: "Species", Problem: "it is empty"}},
		"no number":       {header + "Gentoo,MALE,1,2,3,heavy\n", figures.TableError{Line: 2, Column: "Body Mass (g)", Problem: `"heavy" is no measured value`}},
		"not a number":    {header + "Gentoo,MALE,1,2,3,NaN\n", figures.TableError{Line: 2, Column: "Body Mass (g)", Problem: `"NaN" is no measured value`}},
		"an endless one":  {header + "Gentoo,MALE,1,2,+Inf,4\n", figures.TableError{Line: 2, Column: "Flipper Length (mm)", Problem: `"+Inf" is no measured value`}},
		"a negative mass": {header + "Gentoo,MALE,1,2,3,-4\n", figures.TableError{Line: 2, Column: "Body Mass (g)", Problem: `"-4" is no measured value`}},
		"too many birds": {header + strings.Repeat("Gentoo,MALE,1,2,3,4\n", figures.MaxBirds+1),
			figures.TableError{Line: figures.MaxBirds + 2, Problem: "more than 100000 birds"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := figures.ReadTable(strings.NewReader(c.text))
			var refused *figures.TableError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.want, *refused)
		})
	}
}

// The expected figures are those that the authors of the data set publish.
func TestDescribe(t *testing.T) {
	birds, _ := penguins(t)
	for species, want := range map[string]struct {
		n        int
		mean, sd float64
	}{"Adelie": {151, 3700.66, 458.57}, "Chinstrap": {68, 3733.09, 384.34}, "Gentoo": {123, 5076.02, 504.12}} {
		f, err := figures.Describe(t.Context(), birds, species, figures.BodyMass, figures.PerMeasuredBird, 2000)
		require.NoError(t, err)
		require.Equal(t, want.n, f.N, species)
		require.InDelta(t, want.mean, f.Mean, 0.005, species)
		require.InDelta(t, want.sd, f.SD, 0.005, species)
		half := 1.96 * f.SD / 12 // about what theory says of samples of this size
		require.Less(t, f.Low, f.Mean-half/3)
		require.Greater(t, f.High, f.Mean+half/3)
		require.Less(t, f.High-f.Low, 4*half)
		again, err := figures.Describe(t.Context(), birds, species, figures.BodyMass, figures.PerMeasuredBird, 2000)
		require.NoError(t, err)
		require.Equal(t, f, again)
	}
	_, err := figures.Describe(t.Context(), birds, "Emperor", figures.BodyMass, figures.PerMeasuredBird, 10)
	require.Equal(t, &figures.NoValuesError{Species: "Emperor", Measure: figures.BodyMass}, err)
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	_, err = figures.Describe(ctx, birds, "Gentoo", figures.BodyMass, figures.PerMeasuredBird, 2000)
	require.ErrorIs(t, err, reason)
}

func TestCheck(t *testing.T) {
	birds, _ := penguins(t)
	for _, species := range birds.Species() {
		require.Empty(t, figures.Check(birds, describe(t, birds, species, figures.PerMeasuredBird)), species)
	}
	require.Empty(t, figures.Check(birds, describe(t, birds, "Chinstrap", figures.PerBird)), "all of them were measured")
	wrong := figures.Check(birds, describe(t, birds, "Adelie", figures.PerBird))
	require.Len(t, wrong, 4)
	require.Equal(t, figures.Finding{Species: "Adelie", Measure: figures.BodyMass,
		Text: "the mean 3676.32 is taken over 152 birds, and 151 of them were measured: over those it is 3700.66"}, wrong[3])

	good := describe(t, birds, "Gentoo", figures.PerMeasuredBird)
	for name, spoil := range map[string]func(*figures.Analysis){
		"is 217.19, not 217.20":    func(a *figures.Analysis) { a.Figures[2].Mean += 0.01 },
		"is not between":           func(a *figures.Analysis) { a.Figures[2].High = a.Figures[2].Low },
		"is not reported":          func(a *figures.Analysis) { a.Figures = a.Figures[:3] },
		"there is no species":      func(a *figures.Analysis) { a.Species = "Emperor" },
		"nothing of that kind was": func(a *figures.Analysis) { a.Figures[0].Measure = "wingspan_mm" },
	} {
		a := good
		a.Figures = append([]figures.Figure(nil), good.Figures...)
		spoil(&a)
		found := figures.Check(birds, a)
		require.NotEmpty(t, found, name)
		require.Contains(t, found[0].Text, name)
	}
}

func TestReport(t *testing.T) {
	birds, _ := penguins(t)
	var all []figures.Analysis
	for _, species := range []string{"Gentoo", "Adelie", "Chinstrap"} {
		all = append(all, describe(t, birds, species, figures.PerMeasuredBird))
	}
	require.Equal(t, figures.FlipperLength, figures.BySeparation(all)[0])
	require.Zero(t, figures.Separation(all[:1], figures.BodyMass))
	text := figures.Report("Penguins", all, figures.BodyMass)
	require.True(t, strings.HasPrefix(text, "# Penguins\n\nLargest mean body mass: Gentoo, 5076.02 g (n = 123). "+
		"Smallest: Adelie, 3700.66 g (n = 151).\n\n## Body mass (g)\n"), text)
	require.Equal(t, 4, strings.Count(text, "\n## "))
	require.Less(t, strings.Index(text, "| Adelie | 151 | 3700.66 | 458.57 |"), strings.Index(text, "| Gentoo | 123 | 5076.02 | 504.12 |"))
	require.Contains(t, figures.Report("One", all[:1], figures.BodyMass), "Gentoo has a mean body mass of 5076.02 g (n = 123).")
	require.Contains(t, figures.Report("None", nil, figures.BodyMass), "Nobody measured the body mass.")
}
