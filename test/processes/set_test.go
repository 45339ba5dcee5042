package processes_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/test/processes"
)

// newSet returns a set that is stopped with the test, its context and its directory for logs.
func newSet(t *testing.T) (*processes.Set, context.Context, string) {
	t.Helper()
	logs := filepath.Join(t.TempDir(), "logs")
	set, ctx, err := processes.New(t.Context(), logs)
	require.NoError(t, err)
	t.Cleanup(func() { _ = set.Stop() }) // tests that care stop it themselves
	return set, ctx, logs
}

// readiness makes a role one that is awaited by its file.
func readiness(t *testing.T, c processes.Command) processes.Command {
	t.Helper()
	c.ReadyFile = filepath.Join(t.TempDir(), "ready")
	c.Env = append(c.Env, envReady+"="+c.ReadyFile)
	return c
}

var serving = regexp.MustCompile(`^serving at (\S+)$`)

func TestStartReturnsOnceReady(t *testing.T) {
	set, ctx, logs := newSet(t)
	service := readiness(t, role("service"))
	service.ReadyLine = serving
	p, err := set.Start(ctx, service)
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:1", "serving at 127.0.0.1:1", "127.0.0.1:1"}, p.Said())
	require.Equal(t, filepath.Join(logs, "service.log"), p.Log())
	require.Equal(t, "serving at 127.0.0.1:1", p.Tail(5))
	require.NoError(t, set.Stop())
	require.Equal(t, "stopping", set.Tail("service", 1))
	require.NoError(t, set.Stop())
}

func TestStartBelievesOnlyItsOwnProcess(t *testing.T) {
	set, ctx, _ := newSet(t)
	// A ready file and a line in the log that another process left.
	stale := filepath.Join(t.TempDir(), "ready")
	require.NoError(t, os.WriteFile(stale, []byte("stale"), 0o600))
	_, err := set.Run(ctx, processes.Command{Name: "same", Path: "echo", Args: []string{"serving at 127.0.0.1:9"}})
	require.NoError(t, err)
	require.Equal(t, "serving at 127.0.0.1:9", set.Tail("same", 1))
	c := role("deaf")
	c.Name, c.ReadyFile, c.ReadyLine, c.ReadyWithin, c.StopWithin = "same", stale, serving, 200*time.Millisecond, time.Millisecond
	_, err = set.Start(ctx, c)
	var late *processes.NotReadyError
	require.ErrorAs(t, err, &late)
	require.Equal(t, "same", late.Name)
	require.NoFileExists(t, stale)
}

func TestEndBeforeReadyIsReported(t *testing.T) {
	set, ctx, logs := newSet(t)
	_, err := set.Start(ctx, readiness(t, role("broken")))
	var ended *processes.ExitError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, processes.ExitError{Name: "broken", State: "exit status 1", Last: "it is\nbroken",
		Log: filepath.Join(logs, "broken.log")}, *ended)
	<-ctx.Done()
	require.ErrorAs(t, context.Cause(ctx), &ended)
}

func TestCrashEndsTheContext(t *testing.T) {
	set, ctx, _ := newSet(t)
	p, err := set.Start(ctx, readiness(t, role("service")))
	require.NoError(t, err)
	process, err := os.FindProcess(p.PID())
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	<-ctx.Done()
	require.EqualError(t, context.Cause(ctx), "service ended by itself (signal: killed); the end of "+p.Log()+
		":\nserving at 127.0.0.1:1")
	<-p.Ended()
	require.NoError(t, p.Stop())
}

func TestKillOnPurposeIsNoFailure(t *testing.T) {
	set, ctx, _ := newSet(t)
	p, err := set.Start(ctx, readiness(t, role("service")))
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	require.NoError(t, ctx.Err())
	require.Equal(t, "serving at 127.0.0.1:1", p.Tail(5))
}

func TestStopTakesTheYoungestFirst(t *testing.T) {
	set, ctx, _ := newSet(t)
	var screen bytes.Buffer
	prefixer := processes.NewPrefixer(&screen, 2, false)
	for _, name := range []string{"a", "b", "c"} {
		c := readiness(t, role("service"))
		c.Name, c.Output, c.ReadyLine = name, prefixer.For(name), serving
		_, err := set.Start(ctx, c)
		require.NoError(t, err)
	}
	require.NoError(t, set.Stop())
	require.True(t, strings.HasSuffix(screen.String(), "c  | stopping\nb  | stopping\na  | stopping\n"), screen.String())
}

func TestStopKillsWhoDoesNotListen(t *testing.T) {
	set, ctx, _ := newSet(t)
	w := newWitness(t)
	c := role("deaf", w.env())
	c.ReadyLine, c.StopWithin = regexp.MustCompile("serving"), 50*time.Millisecond
	_, err := set.Start(ctx, c)
	require.NoError(t, err)
	w.sees(t, "deaf")
	var killed *processes.KilledError
	require.ErrorAs(t, set.Stop(), &killed)
	require.Equal(t, processes.KilledError{Name: "deaf", After: 50 * time.Millisecond}, *killed)
	w.seesEnd(t, "deaf")
}

func TestStopTakesWhatAProcessStarted(t *testing.T) {
	set, ctx, _ := newSet(t)
	w := newWitness(t)
	_, err := set.Start(ctx, readiness(t, role("family", w.env())))
	require.NoError(t, err)
	w.sees(t, "family", "deaf")
	require.NoError(t, set.Stop())
	w.seesEnd(t, "family")
	w.seesEnd(t, "deaf")
}

func TestNothingStartsAfterStop(t *testing.T) {
	set, ctx, _ := newSet(t)
	require.NoError(t, set.Stop())
	_, err := set.Start(ctx, role("service"))
	require.ErrorIs(t, err, processes.ErrStopped)
}
