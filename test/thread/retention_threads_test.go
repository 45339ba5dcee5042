package thread_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// soon is the result of a call that is over within a second: of a few, since a machine may be busy for a moment.
func soon(t *testing.T, call func() error) (err error) {
	t.Helper()
	fastest := time.Hour
	for tries := 0; tries < 5 && fastest >= time.Second; tries++ {
		began := time.Now()
		err = call()
		fastest = min(fastest, time.Since(began))
	}
	assert.Less(t, fastest, time.Second)
	return err
}

// agedRuns: the server has removed all runs of a thread but the newest. Who asks for a checkpoint of one of those is told at once which run
// had it, and what to do, and nothing is changed; the thread goes on with its whole state.
func agedRuns(t *testing.T, s retained) aged {
	t.Helper()
	const turns, each = 5, 3
	th := s.graph.Thread(s.Client, s.Queue)
	runs := s.turns(t, th, turns)
	before := rig.HistoryOf(t, th)
	require.Len(t, before, each*turns)
	of := func(run int) []thread.CheckpointView { return before[each*(turns-1-run) : each*(turns-run)] }
	left := before[:each+1] // those of the newest run, and the one that it has begun with
	return aged{"a checkpoint " + s.kind, map[string][]string{th.ID(): runs[:turns-1]}, func(t *testing.T) {
		reader := s.graph.Thread(s.process(), th.ID())
		for name, by := range map[string]*superstep.Thread[rig.Counter]{"who has run it": th, "another process": reader} {
			for at, c := range before[len(left):] {
				run := (len(before) - len(left) - 1 - at) / each
				for what, ask := range askedFor(t, by, c.Checkpoint) {
					past(t, soon(t, ask), th.ID(), c.Checkpoint, runs[run], name+": "+what)
				}
			}
			assert.Equal(t, before, rig.HistoryOf(t, by), "what was noted of the runs that are gone")
			valued := rig.HistoryOf(t, by, superstep.WithValues())
			require.Len(t, valued, len(left))
			for i, c := range left {
				assert.Equal(t, c.Checkpoint, valued[i].Checkpoint)
				assert.JSONEq(t, fmt.Sprint(turns-(i+each-1)/each), string(valued[i].Values["n"]), "%d", i)
				at, err := by.State(t.Context(), superstep.AtCheckpoint(c.Checkpoint))
				require.NoError(t, err)
				assert.Equal(t, valued[i].Values, at.Values)
			}
			state, err := by.State(t.Context())
			require.NoError(t, err)
			s.all(t, state.State, turns)
		}
		_, err := s.graph.Thread(s.Client, th.ID()+"-fork").State(t.Context())
		require.ErrorIs(t, err, thread.ErrNotFound, "nothing has begun")
		require.Equal(t, runs[turns-1], runID(t, s.Client, th.ID()), "nothing has begun")

		fork, err := reader.Fork(t.Context(), before[0].Checkpoint, th.ID()+"-fork")
		require.NoError(t, err)
		_, err = fork.Wait(t.Context())
		require.NoError(t, err)
		s.all(t, s.turn(t, fork, turns).Output, turns+1)

		s.all(t, s.turn(t, reader, turns).Output, turns+1) // a run that stays open
		for what, ask := range askedFor(t, th, of(1)[0].Checkpoint) {
			past(t, soon(t, ask), th.ID(), of(1)[0].Checkpoint, runs[1], "an open run: "+what)
		}
		s.all(t, s.turn(t, th, turns+1).Output, turns+2)
		state, err := th.State(t.Context(), superstep.AtCheckpoint(before[0].Checkpoint))
		require.NoError(t, err)
		s.all(t, state.State, turns)
	}}
}

// askedFor are the ways to ask for a checkpoint of a thread.
func askedFor(t *testing.T, th *superstep.Thread[rig.Counter], checkpoint string) map[string]func() error {
	t.Helper()
	return map[string]func() error{
		"state": func() error {
			_, err := th.State(t.Context(), superstep.AtCheckpoint(checkpoint))
			return err
		},
		"fork as a new thread": func() error {
			_, err := th.Fork(t.Context(), checkpoint, th.ID()+"-fork")
			return err
		},
		"fork": func() error {
			_, err := th.Fork(t.Context(), checkpoint, "")
			return err
		},
		"run": func() error {
			_, err := th.Invoke(t.Context(), nil, superstep.FromCheckpoint(checkpoint))
			return err
		},
		"update": func() error {
			_, err := th.Update(t.Context(), rig.Wrote("by hand"), superstep.AtCheckpoint(checkpoint))
			return err
		},
	}
}

// agedLong: a thread that has had more checkpoints than a run notes of those before it. One that nobody notes any more is none of the thread's.
func agedLong(t *testing.T, s retained) aged {
	t.Helper()
	const each = 3
	turns := protocol.CarriedLines/each + 5
	th := s.graph.Thread(s.Client, s.Queue+"-long")
	runs := s.turns(t, th, turns)
	before := rig.HistoryOf(t, th)
	require.Len(t, before, each*turns)
	return aged{"more than a run notes " + s.kind, map[string][]string{th.ID(): runs[:turns-1]}, func(t *testing.T) {
		noted := before[:protocol.CarriedLines+each]
		for _, by := range []*superstep.Thread[rig.Counter]{th, s.graph.Thread(s.process(), th.ID())} {
			assert.Equal(t, noted, rig.HistoryOf(t, by))
			last := len(noted) - 1
			for what, ask := range askedFor(t, by, noted[last].Checkpoint) {
				past(t, soon(t, ask), th.ID(), noted[last].Checkpoint, runs[(len(before)-1-last)/each], what)
			}
			for _, c := range before[len(noted):] {
				for what, ask := range askedFor(t, by, c.Checkpoint) {
					err := soon(t, ask)
					require.ErrorIs(t, err, thread.ErrNotFound, what)
					require.ErrorContains(t, err, fmt.Sprintf("thread %q has no checkpoint %q. List them", th.ID(), c.Checkpoint), what)
				}
			}
		}
		s.all(t, s.turn(t, th, turns).Output, turns+1)
	}}
}

// past holds that an error says of a checkpoint that the run which had it is gone.
func past(t *testing.T, err error, id, checkpoint, run, what string) {
	t.Helper()
	require.ErrorIs(t, err, thread.ErrNotFound, what)
	var told *thread.Error
	require.ErrorAs(t, err, &told, what)
	assert.Equal(t, thread.Error{Kind: thread.ErrNotFound, Graph: "retained", Thread: id,
		Message: fmt.Sprintf("checkpoint %q of thread %q is of run %s, which the server has no more", checkpoint, id, run),
		Do:      "Choose a newer one", Command: []string{"history", id}}, *told, what)
}

// agedThreads: the server has removed a thread's newest run as well, since nobody has used the thread for so long. Nothing is left of it, and
// the next turn begins it anew, also where a process remembers what the thread was.
func agedThreads(t *testing.T, s retained) aged {
	t.Helper()
	type last struct {
		keepOpen time.Duration // behind its last turn
		known    bool          // the process that goes on with it knows it
	}
	kinds := map[string]last{"ended": {-1, true}, "ended, by another process": {-1, false}, "idle": {100 * time.Millisecond, true},
		"idle, by another process": {100 * time.Millisecond, false}}
	runs, newest := map[string][]string{}, map[string]string{}
	for name, c := range kinds {
		th := s.graph.Thread(s.Client, s.Queue+"-"+name)
		runs[th.ID()] = s.turns(t, th, 4)
		s.all(t, s.turn(t, th, 4, superstep.WithKeepOpen(c.keepOpen)).Output, 5)
		newest[name] = rig.HistoryOf(t, th)[0].Checkpoint
		runs[th.ID()] = append(runs[th.ID()], runID(t, s.Client, th.ID()))
		awaitClosed(t, s.Server, th.ID())
	}
	return aged{"a thread " + s.kind, runs, func(t *testing.T) {
		for name, c := range kinds {
			th := s.graph.Thread(s.Client, s.Queue+"-"+name)
			if !c.known {
				th = s.graph.Thread(s.process(), th.ID())
				notThere(t, th, newest[name])
			} // else the turn is the first that hears of it
			s.all(t, s.turn(t, th, 0).Output, 1)
			assert.Len(t, rig.HistoryOf(t, th), 3, name)
			s.all(t, s.turn(t, th, 1).Output, 2)
			state, err := s.graph.Thread(s.process(), th.ID()).State(t.Context())
			require.NoError(t, err)
			s.all(t, state.State, 2)
			_, err = th.State(t.Context(), superstep.AtCheckpoint(newest[name]))
			require.ErrorIs(t, err, thread.ErrNotFound, name)
		}
	}}
}

// awaitClosed waits until a thread's run is over, by itself.
func awaitClosed(t *testing.T, s *rig.Server, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		d, err := s.Temporal.DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(t, err)
		return d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	}, 2*time.Minute, 50*time.Millisecond)
}

// notThere holds that there is no thread to ask about, or to go on with.
func notThere(t *testing.T, th *superstep.Thread[rig.Counter], checkpoint string) {
	t.Helper()
	for what, ask := range map[string]func() error{
		"state":      func() error { _, err := th.State(t.Context()); return err },
		"checkpoint": func() error { _, err := th.State(t.Context(), superstep.AtCheckpoint(checkpoint)); return err },
		"history":    func() error { _, err := th.History(t.Context()); return err },
		"fork":       func() error { _, err := th.Fork(t.Context(), checkpoint, th.ID()+"-fork"); return err },
		"fork here":  func() error { _, err := th.Fork(t.Context(), checkpoint, ""); return err },
		"run on":     func() error { _, err := th.Invoke(t.Context(), nil); return err },
		"run from":   func() error { _, err := th.Invoke(t.Context(), nil, superstep.FromCheckpoint(checkpoint)); return err },
		"retry":      func() error { _, err := th.Retry(t.Context()); return err },
		"resume":     func() error { _, err := th.Resume(t.Context(), true); return err },
		"wait":       func() error { _, err := th.Wait(t.Context()); return err },
	} {
		err := ask()
		require.ErrorIs(t, err, thread.ErrNotFound, what)
		require.ErrorContains(t, err, th.ID(), what)
	}
}
