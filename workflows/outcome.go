package workflows

import (
	"errors"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// ended is how an activity ended without a result.
type ended struct {
	outcome pregel.Outcome
	// silent says that it had no worker that could tell: what the outcome has of it is what it had stored.
	silent bool
	// lost says that one of its executions was lost with its worker.
	lost bool
}

// failedOutcome reads how an activity ended without a result. The ledger comes along in every ending.
func failedOutcome(graph string, task *pregel.Task, err error) pregel.Outcome {
	return endOf(graph, task, err).keeping(task)
}

func (e ended) keeping(task *pregel.Task) pregel.Outcome {
	e.outcome.Kept, e.outcome.Spent = taskrun.KeptIn(task, e.outcome.Ledger), taskrun.SpentIn(task, e.outcome.Ledger)
	return e.outcome
}

// withoutResult is failedOutcome of a task under way, and notes what of it may not be known.
func (t *tasks) withoutResult(u *underWay, err error) pregel.Outcome {
	e := endOf(t.program.Spec.Name, u.task, err)
	if e.silent && !e.lost { // the server said that it is cancelled
		if u.stored == nil {
			t.doubt.Lost = true
		} else {
			e.outcome, e.lost = lastHeard(u.task, u.stored.Progress, e.outcome), u.stored.Lost()
		}
	}
	if e.lost && t.relaxed() {
		t.doubt.Lost = true
	}
	return e.keeping(u.task)
}

func endOf(graph string, task *pregel.Task, err error) ended {
	var application *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var timeout *temporal.TimeoutError
	failure := pregel.NodeError{Type: "Error", Message: err.Error(), Graph: graph, Node: task.Node}
	switch {
	case errors.As(err, &application) && application.HasDetails() && application.Type() == graphadapter.NodeFailedType:
		var failed graphadapter.NodeFailure
		if application.Details(&failed) == nil {
			return ended{outcome: pregel.Outcome{Error: &failed.Error, Emitted: failed.Emitted, Ledger: failed.Ledger}}
		}
	case errors.As(err, &cancelled):
		failure.Type, failure.Message = pregel.CancelledType, "cancelled"
		var stopped graphadapter.NodeCancelled
		if cancelled.HasDetails() && cancelled.Details(&stopped) == nil {
			return ended{outcome: pregel.Outcome{Error: &failure, Emitted: stopped.Emitted, Ledger: stopped.Ledger}, lost: stopped.Lost}
		}
		return ended{outcome: pregel.Outcome{Error: &failure}, silent: true}
	case errors.As(err, &timeout):
		return ended{outcome: timedOut(task, timeout, failure), silent: true, lost: true}
	}
	return ended{outcome: pregel.Outcome{Error: &failure}}
}

// timedOut reads the last heartbeat of a task whose worker was lost. The server gives such a task to another worker, but
// not when its cancellation was asked for: then that is how it ended.
func timedOut(task *pregel.Task, timeout *temporal.TimeoutError, failure pregel.NodeError) pregel.Outcome {
	if timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT {
		failure.Type, failure.Message = pregel.CancelledType, "cancelled; its worker was lost"
	}
	out := pregel.Outcome{Error: &failure}
	var last graphadapter.Progress
	if !timeout.HasLastHeartbeatDetails() || timeout.LastHeartbeatDetails(&last) != nil {
		return out
	}
	return lastHeard(task, last, out)
}

// lastHeard is the end of a task with what its last heartbeat had stored.
func lastHeard(task *pregel.Task, last graphadapter.Progress, out pregel.Outcome) pregel.Outcome {
	if ledger, emitted, err := graphadapter.LastLedger(task.Ledger, last.Tasks[task.Key()]); err == nil {
		out.Ledger, out.Emitted = ledger, emitted
	}
	return out
}

// maxAgo is how long ago a run that ended badly is forgotten: no call to the outside takes that long to arrive.
const maxAgo = time.Hour

// suspicion is what executions that are no more may have done without a trace. What runs next looks up its effects before it
// makes them.
type suspicion struct {
	// Suspicion says which tasks a segment that was lost may have run.
	segment.Suspicion
	// step is the superstep whose tasks may have acted in an earlier run; -1 for none.
	step int
	// since is when, at the latest, a run of the thread ended badly, or this one failed and was held open; zero for never. It is
	// of the server's clock, as is all that it is compared with.
	since time.Time
}

// suspicionOf is what a run that begins knows of the runs before.
func suspicionOf(in *protocol.GraphInput, began time.Time) *suspicion {
	s := &suspicion{Suspicion: in.Suspects, step: -1}
	switch {
	case in.Behind > 0:
		s.since = began.Add(-time.Duration(in.Behind) * time.Millisecond)
	case in.Suspect:
		s.since = began
	}
	return s
}

// none reports whether no task is suspected.
func (s *suspicion) none() bool { return !s.All && !s.Lost && len(s.Tasks) == 0 }

// ago is how long ago a run of the thread ended badly, in milliseconds; 0 for never.
func (s *suspicion) ago(ctx workflow.Context) int64 {
	if s.since.IsZero() {
		return 0
	}
	ago := workflow.Now(ctx).Sub(s.since)
	if ago > maxAgo {
		return 0
	}
	return max(ago.Milliseconds(), 1)
}

// settle ends suspicion where no lost segment can have gone past: at the end, at a question of a node, before a
// breakpoint. It can have gone past a failure, which another execution need not have, and past wherever the run was asked
// to stop: what runs next is suspect then, in the thread's next run too.
func (s *suspicion) settle(e *engine) {
	if e.loop == nil { // an update dropped the superstep: of its tasks nothing is known any more
		return
	}
	switch e.loop.Status() {
	case pregel.StatusDone, pregel.StatusWaiting, pregel.StatusBreakpoint:
		if !doubts(e) {
			s.Suspicion = segment.Suspicion{}
		}
	}
}

// doubts reports whether a question is open that comes of a lost execution alone. That one was not stopped by it, and may
// have gone on.
func doubts(e *engine) bool {
	for _, q := range e.program.OpenQuestions(e.loop.Thread()) {
		if taskrun.IsDoubt(q.Question) {
			return true
		}
	}
	return false
}

// suspects reports whether a task may have been run by an execution that was lost.
func (s *suspicion) suspects(task *pregel.Task) bool {
	return s.All || slices.Contains(s.Tasks, task.Key())
}
