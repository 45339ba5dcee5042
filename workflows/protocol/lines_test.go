package protocol_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// TestLinesAreReadAsTheyWereWritten, whatever stands behind what.
func TestLinesAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}})
		word := rapid.SampledFrom([]string{"", "one", "two"})
		line := rapid.Custom(func(t *rapid.T) protocol.Line {
			return protocol.Line{Step: rapid.IntRange(-1, 3).Draw(t, "step"), Checkpoint: word.Draw(t, "checkpoint"), Parent: word.Draw(t, "parent"),
				Source: pregel.Source(word.Draw(t, "source")), Ran: names.Draw(t, "ran"), Wrote: names.Draw(t, "wrote"), Next: names.Draw(t, "next"),
				Run: word.Draw(t, "run"), At: rapid.Int64Range(0, 2).Draw(t, "at")}
		})
		lines := protocol.Lines(rapid.SliceOf(line).Draw(t, "lines"))
		text, err := json.Marshal(lines)
		require.NoError(t, err)
		var again protocol.Lines
		require.NoError(t, json.Unmarshal(text, &again))
		require.Len(t, again, len(lines))
		for i := range lines {
			require.Equal(t, lines[i], again[i])
		}
	})
}

// TestALineOfALoopIsItsCheckpoint, but for the first, and for one that differs.
func TestALineOfALoopIsItsCheckpoint(t *testing.T) {
	var lines protocol.Lines
	parent := ""
	for step := range 3 {
		l := protocol.Line{Step: step, Checkpoint: fmt.Sprint("c-", step), Parent: parent, Source: pregel.SourceLoop, Ran: []string{"again"}, Run: "r", At: 7}
		lines, parent = append(lines, l), l.Checkpoint
	}
	lines[2].Ran = nil
	text, err := json.Marshal(lines)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"step":0,"checkpoint":"c-0","source":"loop","ran":["again"],"run":"r","at_ms":7},{"checkpoint":"c-1"},{"checkpoint":"c-2","ran":[]}]`, string(text))
}
