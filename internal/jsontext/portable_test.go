package jsontext

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortable(t *testing.T) {
	for _, good := range []string{`{}`, `"\\ud800"`, `"\ud83d\ude00 \" \\"`, `[1e308, -1.5e-999, 12345678901234567890]`, `"1e999"`, `{"é": "\u00e9"}`, `"\`, `"\u12`} {
		require.NoError(t, Portable([]byte(good)), "%s", good)
	}
	for _, bad := range []string{"\"\xff\"", `"\ud800"`, `"\ude00"`, `["\ud83d\u0041"]`, `"\ud83d`, `1e999`, `{"a": [-1E400]}`} {
		require.Error(t, Portable([]byte(bad)), "%s", bad)
	}
}
