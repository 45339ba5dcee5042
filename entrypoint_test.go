package superstep_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
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
	onRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[int]) {
		for _, step := range []struct{ in, out int }{{1, 1_001}, {2, 1_003}, {3, 23}, {5, 28}} {
			got := entrypointRuns(t, th, step.in)
			assert.Equal(t, superstep.StatusFinished, got.Status)
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
	onRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[[]string]) {
		got := entrypointRuns(t, th, "cats")
		require.Equal(t, superstep.StatusWaiting, got.Status)
		assert.Empty(t, got.Output)
		assert.JSONEq(t, `"cats 1"`, string(got.Questions[0].Value))
		got, err := th.Resume(t.Context(), "good")
		require.NoError(t, err)
		assert.Equal(t, []string{"cats 1", "good"}, got.Output)
		assert.Equal(t, 1, calls.of(th.ID(), "write"))
		assert.Equal(t, 3, calls.of(th.ID(), "check"))

		// New input abandons the question; what was kept is the last finished run's.
		require.Equal(t, superstep.StatusWaiting, entrypointRuns(t, th, "dogs").Status)
		require.Equal(t, superstep.StatusWaiting, entrypointRuns(t, th, "birds").Status)
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
	onRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[int]) {
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

func TestEntrypointStateHistoryUpdateAndFork(t *testing.T) {
	g := adder()
	onRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[int]) {
		entrypointRuns(t, th, 1)
		state, err := th.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1_001, state.State)
		assert.Empty(t, state.Next)
		assert.JSONEq(t, `1001`, string(state.Values["previous"]))

		past, err := th.History(t.Context())
		require.NoError(t, err)
		require.Len(t, past, 3)
		assert.Equal(t, []string{"adder"}, past[1].Next)

		state, err = th.Update(t.Context(), 7)
		require.NoError(t, err)
		assert.Equal(t, 7, state.State)
		_, err = th.Update(t.Context(), "seven")
		require.ErrorIs(t, err, superstep.ErrBadInput)
		assert.Equal(t, 10, entrypointRuns(t, th, 3).Output)

		// From the checkpoint before the function ran first: nothing was kept then.
		fork, err := th.Fork(t.Context(), past[1].Checkpoint, graphtest.ThreadID(t)+"-fork")
		require.NoError(t, err)
		got, err := fork.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1_001, got.Output)
		assert.Equal(t, 1_006, entrypointRuns(t, fork, 5).Output)

		// A thread may begin with an update.
		fresh := g.Thread(rt, graphtest.ThreadID(t)+"-fresh")
		_, err = fresh.Update(t.Context(), 20)
		require.NoError(t, err)
		assert.Equal(t, 21, entrypointRuns(t, fresh, 1).Output)
	})
}

func TestAnUpdateEndsWhatAnEntrypointWaitsFor(t *testing.T) {
	g := superstep.NewEntrypoint("updated", func(ctx context.Context, n int) (int, error) {
		if n > 0 {
			return superstep.Interrupt[int](ctx, "?")
		}
		before, _, err := superstep.Previous[int](ctx)
		return before, err
	})
	onRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[int]) {
		require.Equal(t, superstep.StatusWaiting, entrypointRuns(t, th, 1).Status)
		state, err := th.Update(t.Context(), 9)
		require.NoError(t, err)
		assert.Equal(t, 9, state.State)
		assert.Equal(t, superstep.StatusFinished, state.Status)
		assert.Equal(t, 9, entrypointRuns(t, th, 0).Output)
	})
}

func TestEntrypointStreamsWhatItReturns(t *testing.T) {
	g := superstep.NewEntrypoint("streamed", func(ctx context.Context, n int) (map[string]int, error) {
		if err := superstep.Emit(ctx, "working"); err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, nil
		}
		yes, err := superstep.Interrupt[bool](ctx, "sure?")
		return map[string]int{"n": n}, errors.Join(err, unless(yes, err))
	})
	onRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[map[string]int]) {
		modes := []superstep.StreamOption{superstep.StreamUpdates, superstep.StreamValues, superstep.StreamCustom}
		require.NoError(t, th.Start(t.Context(), 0))
		assert.Equal(t, []string{`custom "working"`, `updates {"streamed":null}`, `values null`}, streamLines(t, th, modes))
		require.NoError(t, th.Start(t.Context(), 4))
		asked := streamLines(t, th, modes)
		require.Len(t, asked, 3)
		assert.True(t, strings.HasPrefix(asked[2], `values {"__interrupt__":`), asked[2])
		_, err := th.Resume(t.Context(), true)
		require.NoError(t, err)
		all := streamLines(t, th, modes)
		assert.Equal(t, []string{`custom "working"`, `updates {"streamed":{"n":4}}`, `values {"n":4}`}, all[len(all)-3:])
	})
}

func unless(ok bool, err error) error {
	if ok || err != nil {
		return nil
	}
	return errors.New("refused")
}

func streamLines[Out any](t *testing.T, th *superstep.Thread[Out], modes []superstep.StreamOption) []string {
	t.Helper()
	var lines []string
	for part, err := range th.Stream(t.Context(), modes...) {
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%s %s", part.Mode, part.Data))
	}
	return lines
}

func TestEntrypointRefusesWhatDoesNotFit(t *testing.T) {
	type order struct {
		ID string `json:"id"`
	}
	g := superstep.NewEntrypoint("strict", func(_ context.Context, o order) (string, error) { return o.ID, nil })
	onRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[string]) {
		for _, bad := range []any{4, map[string]any{"id": 1}, map[string]any{"idd": "x"}, []byte(`{"id":`), []byte(`null`)} {
			_, err := th.Invoke(t.Context(), bad)
			require.ErrorIs(t, err, superstep.ErrBadInput, "%v", bad)
		}
		_, err := th.Invoke(t.Context(), nil)
		require.ErrorIs(t, err, superstep.ErrNotFound)
		assert.Equal(t, "o-7", entrypointRuns(t, th, order{"o-7"}).Output)
		_, err = th.Command(t.Context(), superstep.Command[string]{Update: "x"})
		require.ErrorIs(t, err, superstep.ErrBadInput)
	})
}

func TestPreviousAndSaveOutsideTheirFunction(t *testing.T) {
	_, _, err := superstep.Previous[int](t.Context())
	require.ErrorIs(t, err, superstep.ErrOutsideEntrypoint)
	require.ErrorIs(t, superstep.Save(t.Context(), 1), superstep.ErrOutsideEntrypoint)

	// A graph that an entrypoint calls is not the entrypoint.
	inner := adder()
	var inside, called error
	g := superstep.NewEntrypoint("outer", func(ctx context.Context, n int) (int, error) {
		got, err := inner.Invoke(ctx, n)
		if err != nil {
			return 0, err
		}
		_, inside = superstep.Task(ctx, "t", func(ctx context.Context) (int, error) { return 0, superstep.Save(ctx, 1) })
		sub := superstep.NewStateGraph[counter]("inner")
		sub.AddNode("a", func(ctx context.Context, s counter) (counter, error) {
			called = superstep.Save(ctx, 1)
			return s, nil
		})
		sub.AddEdge(superstep.Start, "a")
		_, err = sub.MustCompile().Invoke(ctx, counter{})
		return got.Output, errors.Join(err, superstep.Save(ctx, "kept"))
	})
	th := g.Thread(superstep.NewMemory(), "t")
	assert.Equal(t, 1_002, entrypointRuns(t, th, 2).Output)
	assert.Equal(t, 1_002, entrypointRuns(t, th, 2).Output, "a graph called from a node remembers nothing")
	require.ErrorContains(t, inside, "inside a Task")
	require.ErrorIs(t, called, superstep.ErrOutsideEntrypoint)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.JSONEq(t, `"kept"`, string(state.Values["previous"]))
}

func TestPreviousOfAnotherType(t *testing.T) {
	g := superstep.NewEntrypoint("typed", func(ctx context.Context, n int) (string, error) {
		_, _, err := superstep.Previous[int](ctx)
		return "text", err
	}, superstep.WithRetry(superstep.RetryPolicy{}))
	th := g.Thread(superstep.NewMemory(), "t")
	entrypointRuns(t, th, 1)
	_, err := th.Invoke(t.Context(), 2)
	require.ErrorContains(t, err, `cannot read field "previous" as int`)
	require.Equal(t, 1, attemptsOf(t, th), "it is final")
}

// attemptsOf counts the resets in the newest run's stream, and the first attempt.
func attemptsOf[Out any](t *testing.T, th *superstep.Thread[Out]) int {
	attempts := 1
	for part, err := range th.Stream(t.Context(), superstep.StreamCustom) {
		require.NoError(t, err)
		if part.Mode == superstep.StreamReset {
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

func TestEntrypointMistakes(t *testing.T) {
	fn := func(context.Context, int) (int, error) { return 0, nil }
	wrong := &superstep.Effect[int, int]{Name: "wrong"}
	for name, c := range map[string]struct {
		build func()
		says  string
	}{
		"name":     {func() { superstep.NewEntrypoint("a.b", fn) }, `separates names`},
		"nil":      {func() { superstep.NewEntrypoint[int, int]("e", nil) }, "its function is nil"},
		"channels": {func() { superstep.NewEntrypoint("e", func(context.Context, counter) (int, error) { return 0, nil }) }, "a struct of channels"},
		"defer":    {func() { superstep.NewEntrypoint("e", fn, superstep.WithDefer()) }, "WithDefer"},
		"memory":   {func() { superstep.NewEntrypoint("e", fn, superstep.WithMemory(superstep.SubgraphMemoryNone)) }, "WithMemory"},
		"input":    {func() { superstep.NewEntrypoint("e", fn, superstep.WithInput[counter]()) }, "WithInput"},
		"break":    {func() { superstep.NewEntrypoint("e", fn, superstep.WithInterruptBefore("x")) }, `there is no such node`},
		"effect":   {func() { superstep.NewEntrypoint("e", fn, superstep.WithEffects(wrong)) }, `"wrong"`},
		"key": {func() {
			superstep.NewEntrypoint("e", fn, superstep.WithCache(superstep.CachePolicy{Key: superstep.CacheBy(func(string) (string, error) { return "", nil })}))
		}, "its cache key is made of string"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, ok := recover().(error)
				require.True(t, ok)
				var mistake *superstep.CompileError
				require.ErrorAs(t, err, &mistake)
				assert.Contains(t, mistake.Call, "entrypoint_test.go:")
				assert.ErrorContains(t, err, c.says)
			}()
			c.build()
		})
	}
	g := superstep.NewStateGraph[counter]("g")
	g.AddSubgraph("sub", adder())
	g.AddEdge(superstep.Start, "sub")
	_, err := g.Compile()
	require.ErrorContains(t, err, "its subgraph is an entrypoint")
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
	onRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[bool]) {
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
	text, err := os.ReadFile("docs/differences.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "## What the functional API differs by")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	tests, err := os.ReadFile("entrypoint_test.go")
	require.NoError(t, err)
	named := regexp.MustCompile(`\| (Test\w+) \|\n`).FindAllStringSubmatch(section, -1)
	require.Len(t, named, strings.Count(section, "\n| ")-1, "a row without a test")
	for _, m := range named {
		assert.Contains(t, string(tests), "func "+m[1]+"(")
	}
}
