package screen

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestShellQuote asks a real shell what it makes of quoted words.
func TestShellQuote(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell on this machine")
	}
	rapid.Check(t, func(t *rapid.T) {
		argument := rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return r != 0 }), 0, 30, -1)
		args := rapid.SliceOfN(argument, 1, 20).Draw(t, "args")
		var line strings.Builder
		for _, arg := range args {
			line.WriteString(" " + ShellQuote(arg))
		}
		out, err := exec.Command(sh, "-c", `printf '%s\0'`+line.String()).Output()
		require.NoError(t, err)
		require.Equal(t, strings.Join(args, "\x00")+"\x00", string(out))
	})
}

func TestShellQuoteLeavesPlainWords(t *testing.T) {
	for word, want := range map[string]string{
		"r-7": "r-7", "127.0.0.1:7233": "127.0.0.1:7233", "": "''", "true": "true", `{"a":1}`: `'{"a":1}'`,
		"a b": "'a b'", "it's": `'it'\''s'`, "~": "'~'", "*": "'*'",
	} {
		require.Equal(t, want, ShellQuote(word))
	}
}
