package demo

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/test/processes"
)

func TestConclude(t *testing.T) {
	d := Demo{Name: "demo"}
	require.Equal(t, 0, d.conclude("fine", nil))
	require.Equal(t, 1, d.conclude("", errors.New("broken")))
	require.Equal(t, 3, d.conclude("", &EndedError{"as answered", 3}))
	require.Equal(t, 143, d.conclude("", &processes.SignalError{Signal: "terminated", Number: 15}))
}

func TestYesNo(t *testing.T) {
	for line, want := range map[string][2]bool{"": {true, true}, " Y ": {true, true}, "yes": {true, true}, "n": {false, true},
		"NO": {false, true}, "perhaps": {false, false}} {
		yes, clear := YesNo(line)
		require.Equal(t, want, [2]bool{yes, clear}, line)
	}
}

func TestShellLine(t *testing.T) {
	require.Equal(t, `run refund --input '{"a":1}'`, shellLine([]string{"run", "refund", "--input", `{"a":1}`}))
}
