package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// The limits of one superstep's fan-out. The server terminates a run with 2,000 pending activities or 4 MiB of commands
// in one workflow task, so tasks are scheduled in a window that stays far below both.
const (
	maxPending      = 500
	maxPendingBytes = 3 << 20
	// The server takes 2 MiB of input for one activity; some room is left for what a codec adds.
	maxRequestBytes = 1900 << 10
	// Heartbeat details of all pending activities live in the run's mutable state, of which 4 MiB are safe to fill.
	maxDetailBytes = 4 << 20
	maxLedgerBytes = 128 << 10
	// A task that comes when others have all of that gets this much; it then comes back more often.
	minLedgerBytes = 2 << 10
)

// The recovery numbers of a node's activity: a lost worker is noticed after the heartbeat timeout, which grows with
// wide fan-outs to keep the heartbeats' write rate constant, and its task is repeated at once.
//
// Where server and workers are busy, a heartbeat or a result may take longer than the timeout, and its task would run again though
// no worker was lost, which makes all of them busier. So the timeout also grows with how late results have come lately.
//
// DefaultLostAfter is the heartbeat timeout where [Config.LostAfter] says nothing.
const (
	DefaultLostAfter = 2 * time.Second
	heartbeatFanOut  = 300
	heartbeatLate    = 2                      // times how late
	maxLate          = 750 * time.Millisecond // lost workers make results late too, and must be noticed soon
	retryInterval    = 25 * time.Millisecond
	maxRetryInterval = 2 * time.Second
	// A node's own timeout bounds an attempt. The server wants a bound too; this one only catches lost tasks.
	attemptBound = 365 * 24 * time.Hour
)

// retries repeats an activity for ever: its worker was lost, or gave it back.
func retries() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: retryInterval, BackoffCoefficient: 2, MaximumInterval: maxRetryInterval}
}

// tasks are the tasks of a run that are activities of their own: a window of tasks under way, and a queue of tasks to schedule.
type tasks struct {
	*engine
	inputs *inputs
	doubt  *suspicion

	// outOfTime reports whether the time of the superstep under way is over.
	outOfTime func() bool

	queue   []*pregel.Task
	running int
	under   []*underWay // those that run, in the order in which they were scheduled
	watched bool        // a coroutine notes how they end
	// interrupted says that they were told to end.
	interrupted bool
	bytes       int
	ledgers     int           // bytes of heartbeat details that running tasks may fill
	returns     int           // bytes of history that running tasks may fill unannounced
	late        time.Duration // how late results have come lately, at most maxLate
	order       int
	// results are the outcomes that have arrived.
	results []result
}

// result is one task's outcome, with its place in the order of scheduling.
type result struct {
	order   int
	task    *pregel.Task
	outcome pregel.Outcome
}

func (t *tasks) add(all []*pregel.Task) { t.queue = append(t.queue, all...) }

// schedule starts the queued tasks that fit the window.
func (t *tasks) schedule(ctx workflow.Context) {
	for len(t.queue) > 0 && t.running < t.limit() {
		task := t.queue[0]
		req := t.request(ctx, task)
		size := requestSize(req)
		if t.running > 0 && t.bytes+size > maxPendingBytes && size <= maxRequestBytes {
			return
		}
		t.queue = t.queue[1:]
		t.order++
		if refused := t.tooLarge(req, size); refused != nil {
			t.results = append(t.results, result{t.order, task, pregel.Outcome{Error: refused}})
			continue
		}
		t.bytes += size
		t.execute(ctx, task, req, size, t.order)
	}
}

// limit is how many tasks may be under way at once.
func (t *tasks) limit() int {
	if t.in.MaxConcurrency > 0 {
		return min(t.in.MaxConcurrency, maxPending)
	}
	return maxPending
}

// wide is how many tasks will be under way at once.
func (t *tasks) wide() int { return min(t.limit(), len(t.queue)+t.running) }

// share is how many bytes the heartbeats of one more task may carry: an equal part of the bytes that are left, for each of the tasks
// that are about to be scheduled.
func (t *tasks) share(limit int) int {
	come := max(1, min(limit-t.running, len(t.queue)))
	return min(maxLedgerBytes, max(minLedgerBytes, (maxDetailBytes-t.ledgers)/come))
}

// minReturnBytes is what any task may return unannounced.
const minReturnBytes = 8 << 10

// mayReturn is how many bytes one more task may return unannounced: an equal part of half of the history that is left, for each of
// the tasks that are about to be scheduled. The other half is for larger results.
func (t *tasks) mayReturn(ctx workflow.Context) int {
	come := max(1, min(t.limit()-t.running, len(t.queue)))
	left := (graphadapter.HistoryRoom-workflow.GetInfo(ctx).GetCurrentHistorySize())/2 - t.returns
	return min(maxRequestBytes, max(minReturnBytes, left/come))
}

// execute starts a task's activity; its result is noted when it arrives.
func (t *tasks) execute(ctx workflow.Context, task *pregel.Task, req graphadapter.NodeRequest, size, order int) {
	options := t.activityOptions(task)
	under, ctx := t.begin(ctx, task)
	t.ledgers += req.LedgerBytes
	t.returns += req.ReturnBytes
	under.future = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options),
		t.in.Graph+"."+activityNode(task), req)
	under.order, under.bytes, under.ledgers, under.returns = order, size, req.LedgerBytes, req.ReturnBytes
	t.watch(ctx)
}

// watch has a coroutine note how the tasks under way end. One does for all of them: each coroutine has a turn whenever
// anything happens, and hundreds of them took longer than all else that a wide superstep does in workflow code.
func (t *tasks) watch(ctx workflow.Context) {
	if t.watched {
		return
	}
	t.watched = true
	// The tasks of a cancelled run are still awaited: WaitForCancellation reports how they really ended.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for t.running > 0 {
			_ = workflow.Await(ctx, func() bool { return slices.ContainsFunc(t.under, (*underWay).ended) })
			if t.collect(ctx) {
				GiveWay(ctx)
			}
		}
		t.watched = false
	})
}

// collect notes the outcomes of tasks that have ended, and reports whether these are as many as are read without a turn for others.
func (t *tasks) collect(ctx workflow.Context) bool {
	left, bytes, late := deliveriesAtOnce, bytesAtOnce, t.late/2
	t.under = slices.DeleteFunc(t.under, func(u *underWay) bool {
		if left == 0 || bytes <= 0 || !u.ended() {
			return false
		}
		var outcome pregel.Outcome
		if err := u.future.Get(ctx, &outcome); err != nil {
			outcome = t.withoutResult(u, err)
		} else {
			late = max(late, workflow.Now(ctx).Sub(u.began)-time.Duration(outcome.Took)*time.Millisecond)
		}
		if t.outOfTime != nil && t.outOfTime() {
			outcome = outcome.Late(t.program.Spec.Name, u.task)
		}
		left--
		bytes -= pregel.ResultBytes(&outcome.Command, outcome.Routes)
		t.running--
		t.bytes -= u.bytes
		t.ledgers -= u.ledgers
		t.returns -= u.returns
		t.results = append(t.results, result{u.order, u.task, outcome})
		return true
	})
	t.late, t.interrupted = min(late, maxLate), t.interrupted && t.running > 0
	return left == 0 || bytes <= 0
}

// behind reports whether outcomes have arrived that the engine was not given yet.
func (t *tasks) behind() bool {
	return len(t.results) > 0 || slices.ContainsFunc(t.under, (*underWay).ended)
}

// deliver gives the arrived outcomes to the engine, in the order in which their tasks were scheduled.
// With drop the superstep is to be dropped, so that none of them ends it.
func (t *tasks) deliver(drop bool) {
	arrived := t.results
	t.results = nil
	slices.SortFunc(arrived, func(a, b result) int { return a.order - b.order })
	for _, r := range arrived {
		if drop {
			r.outcome = taskrun.Dropped(t.in.Graph, r.task.Node, r.outcome)
		}
		t.loop.Deliver(r.task, r.outcome)
	}
}

// activityNode is the part of the activity's name after the graph: the node, behind the subgraphs that lead to it.
func activityNode(task *pregel.Task) string {
	name := ""
	for _, sub := range task.Graph {
		name += sub + "/"
	}
	return name + task.Node
}

// heartbeatTimeout is after how much silence a task's worker counts as lost.
func (t *tasks) heartbeatTimeout() time.Duration {
	beat := t.lostAfter
	if wide := t.wide(); wide > heartbeatFanOut {
		beat = t.lostAfter * time.Duration(wide) / heartbeatFanOut
	}
	return beat + t.patience()
}

// patience is how much longer than that the server is given where results come late, or workflow tasks do now. A few milliseconds are late
// on an idle machine.
func (t *tasks) patience() time.Duration {
	late := min(max(t.late, t.lateNow()), maxLate)
	return (heartbeatLate * late).Truncate(100 * time.Millisecond)
}

func (t *tasks) activityOptions(task *pregel.Task) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		// The id carries the digest of what led here: a changed reducer or engine gives another id on replay, which
		// stops the run with a nondeterminism error instead of corrupting it.
		ActivityID:          protocol.ActivityID(task),
		TaskQueue:           t.program.TaskQueue(task),
		StartToCloseTimeout: attemptBound,
		HeartbeatTimeout:    t.heartbeatTimeout(),
		WaitForCancellation: true,
		RetryPolicy:         retries(),
		Summary:             fmt.Sprintf("step %d %s", task.Step, task.Path),
	}
}

func (t *tasks) request(ctx workflow.Context, task *pregel.Task) graphadapter.NodeRequest {
	sent := *task
	sent.Digest = "" // the activity's id has what it is for
	if task.IsSend() && len(task.Branches) == 0 {
		sent.State = nil // a Send's node sees its argument only
	}
	suspect := t.loop != nil && (t.loop.Step() == t.doubt.step || t.doubt.suspects(task))
	req := graphadapter.NodeRequest{
		Graph: t.in.Graph, Thread: workflow.GetInfo(ctx).WorkflowExecution.ID, Task: sent, Print: t.print(),
		Durability: t.durability(), Context: t.in.Context, Requester: t.in.Requester, OriginalRunID: workflow.GetInfo(ctx).OriginalRunID,
		Suspect: suspect, Lost: suspect && t.doubt.Lost,
		Behind:      t.doubt.ago(ctx),
		LedgerBytes: t.share(t.limit()), ReturnBytes: t.mayReturn(ctx), Trace: t.traced.String(),
	}
	t.inputs.shorten(ctx, &req)
	return req
}

// underWay is the activity of a task that has not ended.
type underWay struct {
	id     string
	task   *pregel.Task
	cancel workflow.CancelFunc
	future workflow.Future
	order  int // its place in the order of scheduling
	began  time.Time
	// What it takes of the bounds of all tasks under way: see tasks.
	bytes, ledgers, returns int
	// stored is what it had stored before it was cancelled; nil when it was not asked for, or could not be.
	stored *segment.Stored
}

// begin counts a task as one under way, and returns the context of its activity.
func (t *tasks) begin(ctx workflow.Context, task *pregel.Task) (*underWay, workflow.Context) {
	u := &underWay{id: protocol.ActivityID(task), task: task, began: workflow.Now(ctx)}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ctx, u.cancel = workflow.WithCancel(ctx)
	t.running++
	t.under = append(t.under, u)
	return u, ctx
}

func (u *underWay) ended() bool { return u.future.IsReady() }

// tooLarge refuses a task that no worker could be given: its payload is one that the server refuses, which would make
// the run's worker try for ever, or a worker would have to hold too much for it.
func (t *tasks) tooLarge(req graphadapter.NodeRequest, size int) *pregel.NodeError {
	limit := maxRequestBytes
	if len(req.References) > 0 && size <= limit {
		limit = maxReferred
		for _, ref := range req.References {
			size += ref.Size
		}
	}
	if size <= limit {
		return nil
	}
	return &pregel.NodeError{Type: "PayloadTooLarge", Graph: t.in.Graph, Node: req.Task.Node,
		Message: fmt.Sprintf("what the node reads has %d bytes, at most %d can be given to it: keep large values outside and "+
			"references in the state, or let the node read less of it", size, limit)}
}
