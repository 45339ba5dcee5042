package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
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
const (
	heartbeatTimeout = 2 * time.Second
	heartbeatFanOut  = 300
	retryInterval    = 100 * time.Millisecond
	maxRetryInterval = 2 * time.Second
	// A node's own timeout bounds an attempt. The server wants a bound too; this one only catches lost tasks.
	attemptBound = 365 * 24 * time.Hour
)

// window holds the tasks that wait to be scheduled and counts those under way.
type window struct {
	queue   []*pregel.Task
	running int
	under   []*underWay // those that run, in the order in which they were scheduled
	// interrupted says that they were told to end.
	interrupted bool
	bytes       int
	ledgers     int // bytes of heartbeat details that running tasks may fill
	returns     int // bytes of history that running tasks may fill unannounced
	order       int
}

// result is one task's outcome, with its place in the order of scheduling.
type result struct {
	order   int
	task    *pregel.Task
	outcome pregel.Outcome
}

func (w *window) add(tasks []*pregel.Task) { w.queue = append(w.queue, tasks...) }

// schedule starts the queued tasks that fit the window.
func (r *run) schedule(ctx workflow.Context) {
	w := &r.tasks
	for len(w.queue) > 0 && w.running < r.limit() {
		task := w.queue[0]
		req := r.request(ctx, task)
		size := requestSize(req)
		if w.running > 0 && w.bytes+size > maxPendingBytes && size <= maxRequestBytes {
			return
		}
		w.queue = w.queue[1:]
		w.order++
		if refused := r.tooLarge(req, size); refused != nil {
			r.results = append(r.results, result{w.order, task, pregel.Outcome{Error: refused}})
			continue
		}
		w.bytes += size
		r.execute(ctx, task, req, size, w.order)
	}
}

// limit is how many tasks may be under way at once.
func (r *run) limit() int {
	if r.in.MaxConcurrency > 0 {
		return min(r.in.MaxConcurrency, maxPending)
	}
	return maxPending
}

// wide is how many tasks will be under way at once.
func (r *run) wide() int { return min(r.limit(), len(r.tasks.queue)+r.tasks.running) }

// share is what the heartbeats of one more task may carry, when it divides what is left with those that come with it.
func (w *window) share(limit int) int {
	come := max(1, min(limit-w.running, len(w.queue)))
	return min(maxLedgerBytes, max(minLedgerBytes, (maxDetailBytes-w.ledgers)/come))
}

// minReturnBytes is what any task may return unannounced.
const minReturnBytes = 8 << 10

// mayReturn is what one more task may return unannounced, when it divides half of the history that is left with those that come
// with it. The other half is for larger results.
func (r *run) mayReturn(ctx workflow.Context) int {
	w := &r.tasks
	come := max(1, min(r.limit()-w.running, len(w.queue)))
	left := (graphadapter.HistoryRoom-workflow.GetInfo(ctx).GetCurrentHistorySize())/2 - w.returns
	return min(maxRequestBytes, max(minReturnBytes, left/come))
}

// execute starts a task's activity; its result is noted when it arrives.
func (r *run) execute(ctx workflow.Context, task *pregel.Task, req graphadapter.NodeRequest, size, order int) {
	options := r.activityOptions(task)
	under, ctx := r.tasks.begin(ctx, task)
	r.tasks.ledgers += req.LedgerBytes
	r.tasks.returns += req.ReturnBytes
	future := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options),
		r.in.Graph+"."+activityNode(task), req)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var outcome pregel.Outcome
		// A future of a cancelled context is still awaited: WaitForCancellation reports how the task really ended.
		if err := future.Get(ctx, &outcome); err != nil {
			outcome = r.withoutResult(under, err)
		}
		r.tasks.end(under)
		r.tasks.bytes -= size
		r.tasks.ledgers -= req.LedgerBytes
		r.tasks.returns -= req.ReturnBytes
		r.results = append(r.results, result{order, task, outcome})
	})
}

// deliver gives the arrived outcomes to the engine, in the order in which their tasks were scheduled.
func (r *run) deliver() {
	arrived := r.results
	r.results = nil
	for len(arrived) > 0 {
		first := 0
		for i := range arrived {
			if arrived[i].order < arrived[first].order {
				first = i
			}
		}
		r.loop.Deliver(arrived[first].task, arrived[first].outcome)
		arrived = append(arrived[:first], arrived[first+1:]...)
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

func (r *run) activityOptions(task *pregel.Task) workflow.ActivityOptions {
	beat := heartbeatTimeout
	if wide := r.wide(); wide > heartbeatFanOut {
		beat = heartbeatTimeout * time.Duration(wide) / heartbeatFanOut
	}
	return workflow.ActivityOptions{
		// The id carries the digest of what led here: a changed reducer or engine gives another id on replay, which
		// stops the run with a nondeterminism error instead of corrupting it.
		ActivityID:          protocol.ActivityID(task),
		TaskQueue:           r.program.TaskQueue(task),
		StartToCloseTimeout: attemptBound,
		HeartbeatTimeout:    beat,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryInterval, BackoffCoefficient: 2, MaximumInterval: maxRetryInterval,
		},
		Summary: fmt.Sprintf("step %d %s", task.Step, task.Path),
	}
}

func (r *run) request(ctx workflow.Context, task *pregel.Task) graphadapter.NodeRequest {
	sent := *task
	sent.Digest = "" // the activity's id has what it is for
	if task.IsSend() && len(task.Branches) == 0 {
		sent.State = nil // a Send's node sees its argument only
	}
	suspect := r.loop != nil && (r.loop.Step() == r.suspectStep || r.segments.suspects(task))
	req := graphadapter.NodeRequest{
		Graph: r.in.Graph, Thread: workflow.GetInfo(ctx).WorkflowExecution.ID, Task: sent, Print: r.print(),
		Durability: r.durability(), Context: r.in.Context, Requester: r.in.Requester, OriginalRunID: workflow.GetInfo(ctx).OriginalRunID,
		Suspect: suspect, Lost: suspect && r.segments.suspect.Lost,
		Behind:      r.behind(ctx),
		LedgerBytes: r.tasks.share(r.limit()), ReturnBytes: r.mayReturn(ctx),
	}
	r.inputs.shorten(ctx, &req)
	return req
}
