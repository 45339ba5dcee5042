package screen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// chart makes steps of lines "id after other, other".
func chart(text string) (all []Step) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		id, after, _ := strings.Cut(strings.TrimSpace(line), " after ")
		s := Step{ID: id, Mark: "·"}
		if after != "" {
			s.After = strings.Split(after, ", ")
		}
		all = append(all, s)
	}
	return all
}

func TestPictures(t *testing.T) {
	for _, c := range []struct{ name, chart, drawn string }{
		{"one", "a", "a ·\n"},
		{"a chain", "a\nb after a\nc after b", "a · ─── b · ─── c ·\n"},
		{"what others imply is left out", "a\nb after a\nc after a, b", "a · ─── b · ─── c ·\n"},
		{"two that depend on nothing", "a\nb", "a ·\nb ·\n"},
		{"a fan and a join", "a\nb after a\ncc after a\nd after b, cc",
			"a · ─┬─ b · ──┬─ d ·\n     └─ cc · ─┘\n"},
		{"a line past a layer", "a\nb after a\nc after b\nd after a\ne after c, d",
			"a · ─┬─ b · ─── c · ─┬─ e ·\n     └─ d · ─────────┘\n"},
		{"one that ends early", "a\nb after a\nc after a\nd after c",
			"a · ─┬─ b ·  ┌─ d ·\n     └─ c · ─┘\n"},
	} {
		drawn, ok := Picture(chart(c.chart))
		require.True(t, ok, c.name)
		require.Equal(t, c.drawn, drawn, "%s:\n%s", c.name, drawn)
	}
}

// TestPicturesThatWouldLie: two that share one of their predecessors need lines that cross.
func TestPicturesThatWouldLie(t *testing.T) {
	for _, c := range []string{
		"1\n2 after 1\n3 after 1\n4 after 3\n5 after 2, 3",
		"a\nb\nc after a\nd after a, b",
	} {
		_, ok := Picture(chart(c))
		require.False(t, ok, c)
	}
	var wide []Step
	for i := range pictureRows + 1 {
		wide = append(wide, Step{ID: fmt.Sprint(i), Mark: "·"})
	}
	_, ok := Picture(wide)
	require.False(t, ok)
}
