package thread_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// retained is a server, with a storage or without, whose runs are removed as they are past the retention of a namespace.
type retained struct {
	*rig.Server
	kind    string // with a storage or without
	graph   *superstep.Graph[rig.Counter]
	process func() *superstep.Client // another one, which remembers nothing
	says    int                      // bytes that are said in a turn
}

// notStored is one without a storage.
func notStored(t *testing.T) retained {
	t.Helper()
	s, g := rig.NewServer(t), talking("retained")
	s.Work(g)
	return retained{Server: s, kind: "without a storage", graph: g, says: 1 << 10, process: func() *superstep.Client {
		c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: s.Queue})
		require.NoError(t, err)
		return c
	}}
}

// inStorage is one with a storage, where the state goes by reference from the first turn on.
func inStorage(t *testing.T) retained {
	t.Helper()
	s, g := newShared(t, rig.NewServer(t)).process(t), talking("retained")
	s.process(t).work(g)
	return retained{Server: s.Server, kind: "with a storage", graph: g, says: 20 << 10, process: func() *superstep.Client { return s.process(t).Client }}
}

// turn gives a thread its next turn.
func (s retained) turn(t *testing.T, th *superstep.Thread[rig.Counter], turn int, opts ...superstep.RunOption) superstep.Result[rig.Counter] {
	t.Helper()
	got, err := th.Invoke(t.Context(), rig.Wrote(said(s.says, uint64(turn))), opts...)
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	return got
}

// turns gives a thread turns of which each is a run of its own, and returns the runs.
func (s retained) turns(t *testing.T, th *superstep.Thread[rig.Counter], turns int) (runs []string) {
	t.Helper()
	for turn := range turns {
		s.turn(t, th, turn, superstep.WithKeepOpen(-1))
		runs = append(runs, runID(t, s.Client, th.ID()))
	}
	return runs
}

// all holds that a state is the one after so many turns.
func (s retained) all(t *testing.T, state rig.Counter, turns int) {
	t.Helper()
	require.EqualValues(t, turns, state.N.Get())
	require.Len(t, state.Log.Get(), turns)
	for turn, text := range state.Log.Get() {
		require.Equal(t, said(s.says, uint64(turn)), text, "turn %d", turn)
	}
}

// aged are threads of which runs are to be removed, and what holds behind that.
type aged struct {
	name  string
	runs  map[string][]string // by thread
	holds func(t *testing.T)
}

// remove removes the runs, which are over, and returns when the server has none of them. It takes half a minute for those that have just ended.
func remove(t *testing.T, s *rig.Server, all []aged) {
	t.Helper()
	each := func(do func(id, run string)) {
		for _, a := range all {
			for id, runs := range a.runs {
				for _, run := range runs {
					do(id, run)
				}
			}
		}
	}
	each(func(id, run string) {
		_, err := s.Temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{Namespace: "default",
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}})
		require.NoError(t, err)
	})
	each(func(id, run string) {
		require.Eventually(t, func() bool {
			_, err := s.Temporal.DescribeWorkflowExecution(t.Context(), id, run)
			var gone *serviceerror.NotFound
			return errors.As(err, &gone)
		}, 4*time.Minute, 100*time.Millisecond)
	})
}

// TestPastRetention: what becomes of threads of which the server has removed runs.
func TestPastRetention(t *testing.T) {
	t.Parallel()
	without, with := notStored(t), inStorage(t)
	all := []aged{agedRuns(t, without), agedRuns(t, with), agedThreads(t, without), agedThreads(t, with), agedLong(t, without)}
	remove(t, without.Server, all)
	for _, a := range all {
		t.Run(a.name, a.holds)
	}
}

// TestHowLongARunIsKeptOpen: its timer is for as long as was asked for, and for an hour where nothing was.
func TestHowLongARunIsKeptOpen(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	g := talking("kept")
	s.Work(g)
	timers := func(id string) (all []time.Duration) {
		for _, e := range stored(t, s, id).GetEvents() {
			if timer := e.GetTimerStartedEventAttributes(); timer != nil {
				all = append(all, timer.GetStartToFireTimeout().AsDuration())
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		opts []superstep.RunOption
		want []time.Duration
		is   enumspb.WorkflowExecutionStatus
	}{
		"an hour":         {[]superstep.RunOption{superstep.WithKeepOpen(time.Hour)}, []time.Duration{time.Hour}, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
		"a month":         {[]superstep.RunOption{superstep.WithKeepOpen(720 * time.Hour)}, []time.Duration{720 * time.Hour}, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
		"for ever":        {[]superstep.RunOption{superstep.WithKeepOpen(0)}, nil, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
		"not at all":      {[]superstep.RunOption{superstep.WithKeepOpen(-1)}, nil, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED},
		"nothing is said": {nil, []time.Duration{time.Hour}, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			th := g.Thread(s.Client, s.Queue+"-"+name)
			rig.Invoke(t, th, rig.Wrote("first")) // it begins, and has ended
			run := runID(t, s.Client, th.ID())
			for turn := 2; turn <= 3; turn++ { // one timer for them all
				got := rig.Invoke(t, th, rig.Wrote("more"), c.opts...)
				require.EqualValues(t, turn, got.Output.N.Get())
				assert.Equal(t, c.want, timers(th.ID()))
				d, err := s.Temporal.DescribeWorkflowExecution(t.Context(), th.ID(), "")
				require.NoError(t, err)
				assert.Equal(t, c.is, d.GetWorkflowExecutionInfo().GetStatus())
				require.NotEqual(t, run, d.GetWorkflowExecutionInfo().GetExecution().GetRunId())
			}
		})
	}
}
