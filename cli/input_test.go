package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

// endless is standard input that never ends, and counts what was taken from it.
type endless struct{ taken int }

func (e *endless) Read(p []byte) (int, error) {
	e.taken += len(p)
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestInputBounds(t *testing.T) {
	exact := `"` + strings.Repeat("x", maxAnswer-2) + `"`
	flag := jsonFlag{name: "--value", max: maxAnswer}
	for name, source := range map[string]func(text string) (string, io.Reader){
		"on the command line": func(text string) (string, io.Reader) { return text, nil },
		"from standard input": func(text string) (string, io.Reader) { return "-", strings.NewReader(text) },
		"from a file": func(text string) (string, io.Reader) {
			path := filepath.Join(t.TempDir(), "answer.json")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			return "@" + path, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			value, stdin := source(exact)
			got, err := flag.read(t.Context(), value, stdin)
			require.NoError(t, err)
			require.Equal(t, exact, string(got))

			value, stdin = source(exact + " ")
			_, err = flag.read(t.Context(), value, stdin)
			require.ErrorIs(t, err, thread.ErrBadInput)
			require.ErrorContains(t, err, "--value is over 256 KiB")
		})
	}
}

func TestInputDoesNotReadOn(t *testing.T) {
	stdin := &endless{}
	_, err := jsonFlag{name: "--input", max: maxInput}.read(t.Context(), "-", stdin)
	require.ErrorContains(t, err, "over 1 MiB")
	require.LessOrEqual(t, stdin.taken, 2*maxInput+1)
}

func TestInputGivesUpOnCtrlC(t *testing.T) {
	stdin, writer := io.Pipe() // nobody writes
	defer writer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := jsonFlag{name: "--input", max: maxInput}.read(ctx, "-", stdin)
	require.ErrorIs(t, err, errInterrupted)
}

func TestInputThatFails(t *testing.T) {
	_, err := jsonFlag{name: "--input", max: maxInput}.read(t.Context(), "-", failing{})
	require.ErrorContains(t, err, "--input from standard input: broken")
}

// failing cannot be read from or written to.
type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, errors.New("broken") }
func (failing) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestInputPositions(t *testing.T) {
	for text, want := range map[string]string{
		"{\"a\": \xff}":        "--input is not UTF-8 at line 1 column 7",
		"{\n\"ä\": 1,\n}":      "--input is not JSON at line 3 column 1",
		"{\"ä\": x}":           "--input is not JSON at line 1 column 7",
		"{} {}":                "--input is not JSON at line 1 column 4",
		"\n\n":                 "--input is empty",
		"null":                 "--input is null; it takes an object",
		"true":                 "--input is a boolean; it takes an object",
		"-7":                   "--input is a number; it takes an object",
		`"a"`:                  "--input is a string; it takes an object",
		strings.Repeat("[", 2): "--input is not JSON at line 1 column 3",
		// Deeper than any reader goes: refused, not a stack overflow.
		strings.Repeat("[", 100_000): "--input is not JSON at line 1 column 10001",
	} {
		_, err := jsonFlag{name: "--input", max: maxInput, object: true}.read(t.Context(), text, nil)
		require.ErrorIs(t, err, thread.ErrBadInput)
		require.ErrorContains(t, err, want)
	}
}

func TestInputKeepsDigits(t *testing.T) {
	const text = `{"n":12345678901234567890.10,"e":1E400}`
	got, err := jsonFlag{name: "--input", max: maxInput, object: true}.read(t.Context(), " "+text+"\n", nil)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

func FuzzInput(f *testing.F) {
	for _, seed := range []string{"{}", "{\"a\":\n1}", "[", "\xff", "yes", `{"a":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		flag := jsonFlag{name: "--input", max: 1000, object: true}
		got, err := flag.read(t.Context(), "-", bytes.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, thread.ErrBadInput)
			require.NotContains(t, screen.Clean(err.Error()), "\n")
			return
		}
		require.True(t, json.Valid(got))
		require.Equal(t, byte('{'), got[0])
	})
}
