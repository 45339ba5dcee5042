package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/internal/figures"
)

// TestEveryFigureIsDocumented holds the table of observability.md to the figures that workers have: each has its row as it
// stands in the code, in that order, and there is no other.
func TestEveryFigureIsDocumented(t *testing.T) {
	text, err := os.ReadFile("observability.md")
	require.NoError(t, err)
	var want []string
	for _, f := range figures.All() {
		want = append(want, f.Row())
	}
	var rows []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `superstep_") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	assert.Equal(t, strings.Join(want, "\n"), strings.Join(rows, "\n"))
}

// figureName is a metric of ours as Prometheus has it, without the endings of a histogram.
var figureName = regexp.MustCompile(`\bsuperstep_[a-z_]+_(?:total|seconds|open\b)`)

// TestFiguresThatAreNamedExist: what documents, the dashboard and the rules ask for is what workers export.
func TestFiguresThatAreNamedExist(t *testing.T) {
	exported := map[string]bool{}
	for _, f := range figures.All() {
		exported[f.Exported()] = true
	}
	for _, file := range []string{"observability.md", "../deploy/grafana/superstep.json", "../deploy/prometheus/superstep.rules.yml"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		names := figureName.FindAllString(string(text), -1)
		assert.NotEmpty(t, names, file)
		for _, name := range names {
			assert.True(t, exported[name], "%s names %s, which no worker exports", file, name)
		}
	}
}
