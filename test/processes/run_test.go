package processes_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/test/processes"
)

func TestRunReturnsTheExitCode(t *testing.T) {
	set, ctx, _ := newSet(t)
	var out bytes.Buffer
	hello := role("hello")
	hello.Output = &out
	code, err := set.Run(ctx, hello)
	require.NoError(t, err)
	require.Equal(t, 7, code)
	require.Equal(t, "hello\n", out.String())
	require.NoError(t, ctx.Err(), "its end is no failure of the set")
}

func TestRunWithoutProgram(t *testing.T) {
	set, ctx, logs := newSet(t)
	_, err := set.Run(ctx, processes.Command{Name: "missing", Path: logs + "/missing"})
	require.ErrorContains(t, err, "start missing: ")
}

func TestRunIsStoppedWithItsContext(t *testing.T) {
	set, ctx, _ := newSet(t)
	w := newWitness(t)
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(ctx)
	result := make(chan error, 1)
	go func() {
		_, err := set.Run(ctx, role("service", w.env()))
		result <- err
	}()
	w.sees(t, "service")
	cancel(reason)
	require.ErrorIs(t, <-result, reason)
	w.seesEnd(t, "service")
}

func TestPrefixer(t *testing.T) {
	var out bytes.Buffer
	plain := processes.NewPrefixer(&out, 4, false)
	a, b := plain.For("a"), plain.For("long")
	write(t, a, "one\ntw")
	write(t, b, "other\n\n")
	write(t, a, "o\nrest")
	a.(interface{ Flush() }).Flush()
	b.(interface{ Flush() }).Flush()
	require.Equal(t, "a    | one\nlong | other\nlong | \na    | two\na    | rest\n", out.String())

	out.Reset()
	write(t, processes.NewPrefixer(&out, 1, true).For("a"), "x\n")
	require.Equal(t, "\x1b[36ma | \x1b[0mx\n", out.String())
}

func write(t *testing.T, to interface{ Write([]byte) (int, error) }, text string) {
	t.Helper()
	n, err := to.Write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
}
