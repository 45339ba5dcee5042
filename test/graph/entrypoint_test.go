package graph_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

// counted counts calls by thread: a graph is shared by all runtimes.
type counted struct{ calls sync.Map }

func (c *counted) add(ctx context.Context, what string) int {
	n, _ := c.calls.LoadOrStore(superstep.Info(ctx).Thread+"/"+what, new(atomic.Int32))
	return int(n.(*atomic.Int32).Add(1))
}

func (c *counted) of(thread, what string) int {
	n, ok := c.calls.Load(thread + "/" + what)
	if !ok {
		return 0
	}
	return int(n.(*atomic.Int32).Load())
}

// adder adds its input to what it returned before, and saves ten times the input when that is even.
func adder(opts ...superstep.EntrypointOption) *superstep.Graph[int] {
	return superstep.NewEntrypoint("adder", func(ctx context.Context, n int) (int, error) {
		before, known, err := superstep.Previous[int](ctx)
		if err != nil {
			return 0, err
		}
		if !known {
			before = 1_000
		}
		if n%2 == 0 {
			err = superstep.Save(ctx, 10*n)
		}
		return before + n, err
	}, opts...)
}

func entrypointRuns[Out any](t *testing.T, th *superstep.Thread[Out], input any) superstep.Result[Out] {
	t.Helper()
	got, err := th.Invoke(t.Context(), input)
	require.NoError(t, err)
	return got
}

func TestEntrypointKeepsWhatItReturnedOrSaved(t *testing.T) {
	g := adder()
	rig.OnRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[int]) {
		for _, step := range []struct{ in, out int }{{1, 1_001}, {2, 1_003}, {3, 23}, {5, 28}} {
			got := entrypointRuns(t, th, step.in)
			assert.Equal(t, thread.StatusFinished, got.Status)
			assert.Equal(t, step.out, got.Output)
		}
	})
}

func TestEntrypointWaitsForAnswersWithItsTasksRemembered(t *testing.T) {
	var calls counted
	g := superstep.NewEntrypoint("asking", func(ctx context.Context, topic string) ([]string, error) {
		draft, err := superstep.Task(ctx, "write", func(ctx context.Context) (string, error) {
			return fmt.Sprintf("%s %d", topic, calls.add(ctx, "write")), nil
		})
		if err != nil {
			return nil, err
		}
		parallel := []*superstep.Future[int]{}
		for i := range 3 {
			parallel = append(parallel, superstep.Go(ctx, "check", func(ctx context.Context) (int, error) {
				return i, errors.Join(nil, ctx.Err(), tally(&calls, ctx, "check"))
			}))
		}
		for i, f := range parallel {
			if got, err := f.Get(ctx); err != nil || got != i {
				return nil, fmt.Errorf("check %d returned %d: %w", i, got, err)
			}
		}
		verdict, err := superstep.Interrupt[string](ctx, draft)
		if err != nil {
			return nil, err
		}
		kept, _, err := superstep.Previous[[]string](ctx)
		return append(kept, draft, verdict), err
	})
	rig.OnRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[[]string]) {
		got := entrypointRuns(t, th, "cats")
		require.Equal(t, thread.StatusWaiting, got.Status)
		assert.Empty(t, got.Output)
		assert.JSONEq(t, `"cats 1"`, string(got.Questions[0].Value))
		got, err := th.Resume(t.Context(), "good")
		require.NoError(t, err)
		assert.Equal(t, []string{"cats 1", "good"}, got.Output)
		assert.Equal(t, 1, calls.of(th.ID(), "write"))
		assert.Equal(t, 3, calls.of(th.ID(), "check"))

		// New input abandons the question; what was kept is the last finished run's.
		require.Equal(t, thread.StatusWaiting, entrypointRuns(t, th, "dogs").Status)
		require.Equal(t, thread.StatusWaiting, entrypointRuns(t, th, "birds").Status)
		got, err = th.Resume(t.Context(), "better")
		require.NoError(t, err)
		assert.Equal(t, []string{"cats 1", "good", "birds 3", "better"}, got.Output)
	})
}

func tally(c *counted, ctx context.Context, what string) error {
	c.add(ctx, what)
	return nil
}

// A retry and a continued run call no task again; LangGraph repeats them in a retry.
func TestEntrypointRetriesWithItsTasksRemembered(t *testing.T) {
	var calls counted
	g := superstep.NewEntrypoint("flaky", func(ctx context.Context, n int) (int, error) {
		v, err := superstep.Task(ctx, "double", func(ctx context.Context) (int, error) {
			return 2 * n, tally(&calls, ctx, "double")
		})
		if err != nil {
			return 0, err
		}
		if calls.add(ctx, "run") < 5 {
			return 0, errors.New("not yet")
		}
		return v, nil
	}, superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 3, InitialInterval: -1, NoJitter: true}))
	rig.OnRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[int]) {
		_, err := th.Invoke(t.Context(), 4)
		var failed *superstep.RunError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "flaky", failed.Node)
		assert.Equal(t, 3, calls.of(th.ID(), "run"))
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 8, got.Output)
		assert.Equal(t, 5, calls.of(th.ID(), "run"))
		assert.Equal(t, 1, calls.of(th.ID(), "double"))
	})
}

// attemptsOf counts the resets in the newest run's stream, and the first attempt.
func attemptsOf[Out any](t *testing.T, th *superstep.Thread[Out]) int {
	attempts := 1
	for part, err := range th.Stream(t.Context(), thread.StreamCustom) {
		require.NoError(t, err)
		if part.Mode == thread.StreamReset {
			attempts++
		}
	}
	return attempts
}

func TestEntrypointIsCachedByItsInput(t *testing.T) {
	var ran atomic.Int32
	g := superstep.NewEntrypoint("cached", func(ctx context.Context, n int) (int, error) {
		return int(ran.Add(1)), superstep.Save(ctx, n)
	}, superstep.WithCache(superstep.CachePolicy{Key: superstep.CacheBy(func(n int) (string, error) { return fmt.Sprint(n % 2), nil })}))
	th := g.Thread(superstep.NewMemory(), "t")
	for _, step := range []struct{ in, out int }{{1, 1}, {3, 1}, {2, 2}, {5, 1}, {4, 2}} {
		assert.Equal(t, step.out, entrypointRuns(t, th, step.in).Output)
	}
}

func TestANewTaskBeforeAnOldOneChangesNothing(t *testing.T) {
	deployed, calls := false, 0
	g := superstep.NewEntrypoint("deployed", func(ctx context.Context, n int) (int, error) {
		if deployed {
			if _, err := superstep.Task(ctx, "new", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
		}
		old, err := superstep.Task(ctx, "old", func(context.Context) (int, error) {
			calls++
			return calls, nil
		})
		if err != nil {
			return 0, err
		}
		_, err = superstep.Interrupt[bool](ctx, "?")
		return old, err
	})
	th := g.Thread(superstep.NewMemory(), "t")
	entrypointRuns(t, th, 1)
	deployed = true
	got, err := th.Resume(t.Context(), true)
	require.NoError(t, err)
	assert.Equal(t, 1, got.Output)
	assert.Equal(t, 1, calls)
}

func TestASavedNullIsNoMissingValue(t *testing.T) {
	g := superstep.NewEntrypoint("null", func(ctx context.Context, _ int) (bool, error) {
		_, known, err := superstep.Previous[*int](ctx)
		return known, errors.Join(err, superstep.Save[*int](ctx, nil))
	})
	rig.OnRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[bool]) {
		assert.False(t, entrypointRuns(t, th, 1).Output)
		assert.True(t, entrypointRuns(t, th, 1).Output)
	})
}

func TestEntrypointIsCachedByAllItReads(t *testing.T) {
	th := adder(superstep.WithCache(superstep.CachePolicy{})).Thread(superstep.NewMemory(), "t")
	for _, want := range []int{1_001, 1_002, 1_003} {
		assert.Equal(t, want, entrypointRuns(t, th, 1).Output)
	}
}

// TestEveryDifferenceOfTheFunctionalAPIIsTested holds the table of docs/differences.md to tests that are there.
func TestEveryDifferenceOfTheFunctionalAPIIsTested(t *testing.T) {
	text, err := os.ReadFile("../../docs/differences.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "## What the functional API differs by")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	files, err := filepath.Glob("entrypoint*_test.go")
	require.NoError(t, err)
	var tests []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		tests = append(tests, text...)
	}
	named := regexp.MustCompile(`\| (Test\w+) \|\n`).FindAllStringSubmatch(section, -1)
	require.Len(t, named, strings.Count(section, "\n| ")-1, "a row without a test")
	for _, m := range named {
		assert.Contains(t, string(tests), "func "+m[1]+"(")
	}
}
