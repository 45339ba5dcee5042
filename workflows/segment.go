package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/workflows/protocol"
)

// segments are the activities that run consecutive supersteps of a run. The run keeps its own loop: what a segment brings
// back is delivered to it, outcome by outcome, so that there is one interpretation of what happened. While one is under
// way nothing else is.
type segments struct {
	under *segmentRun // nil for none
	count int         // that were begun, for their ids
	// apart says that the tasks in the queue are not for a segment, whatever else speaks for one.
	apart bool
	// suspect says which tasks an execution that was lost may have run.
	suspect segment.Suspicion
	// expired is set when the superstep under way ran out of time in a segment.
	expired *graphadapter.StepTimeoutError
	print   string // of the run's Spec
	spec    known
}

// segment is one that is under way.
type segmentRun struct {
	id     string
	ready  []*pregel.Task // those that the loop had handed out
	from   pregel.Value   // the run as it was handed over
	cancel workflow.CancelFunc
	// interrupted says that it was asked to leave, and stored is what it had stored before; unread, that nobody could say.
	interrupted, unread bool
	stored              segment.StoredProgress
	result              *segment.StoredResult // nil until it has ended
	// lost says that it ended without a result of its own; unbegun, that no worker ever began it.
	lost, unbegun bool
}

// fuses reports whether the tasks that wait are for a segment: the run's durability asks for it, nothing else is under
// way, and all of them are for the run's own task queue.
func (r *run) fuses() bool {
	if r.segments.apart || r.tasks.running > 0 || len(r.results) > 0 || len(r.tasks.queue) == 0 {
		return false
	}
	if _, fused := r.mode(); !fused && !r.relaxed() {
		return false
	}
	for _, task := range r.tasks.queue {
		if r.program.TaskQueue(task) != "" {
			// No segment has gone past here.
			r.segments.suspect = segment.Suspicion{Lost: r.segments.suspect.Lost}
			return false
		}
	}
	return true
}

// mode is the run's durability, and whether its supersteps are fused in sync mode too.
func (r *run) mode() (graphadapter.Durability, bool) {
	return graphadapter.ModeOf(r.program.Spec, r.in.Durability, r.in.Fused)
}

func (r *run) durability() graphadapter.Durability {
	d, _ := r.mode()
	return d
}

// relaxed reports whether what a superstep did may be stored later than the next begins.
func (r *run) relaxed() bool {
	d := r.durability()
	return d == graphadapter.DurabilityAsync || d == graphadapter.DurabilityExit
}

// startSegment hands the run over to an activity until it comes back. It reports false when the run is too large for that.
func (r *run) startSegment(ctx workflow.Context) bool {
	s := &r.segments
	first := r.tasks.queue[0]
	r.loop.PutBack(r.tasks.queue...)
	suspended, err := r.loop.Suspend()
	r.tasks.queue = r.loop.Ready()
	if err != nil {
		workflow.GetLogger(ctx).Error("the run cannot be handed to a segment", "error", err)
		s.apart = true
		return false
	}
	req := r.segmentRequest(ctx, suspended)
	if len(suspended) > maxReferred {
		s.apart = true
		return false
	}
	s.count++
	// The run's own end cancels it too, but not before what it stored is known: see interruptSegment.
	apart, _ := workflow.NewDisconnectedContext(ctx)
	segmentCtx, cancel := workflow.WithCancel(apart)
	options := r.segmentOptions(first)
	future := workflow.ExecuteActivity(workflow.WithActivityOptions(segmentCtx, options), segment.SegmentActivity, req)
	under := &segmentRun{id: options.ActivityID, ready: r.tasks.queue, from: suspended, cancel: cancel}
	s.under, r.tasks.queue = under, nil
	if sink, ok := r.sink.(graphadapter.SegmentRecorder); ok && req.Durability != graphadapter.DurabilityExit {
		sink.Handed(under.id, r.program, suspended)
	}
	workflow.Go(apart, func(ctx workflow.Context) {
		var encoded []byte
		if err := future.Get(ctx, &encoded); err != nil {
			under.result = &segment.StoredResult{Result: r.lostSegment(under, err)}
			return
		}
		result, err := segment.DecodeResult(encoded)
		if err != nil {
			panic(err.Error())
		}
		under.result = result
	})
	return true
}

func (r *run) segmentRequest(ctx workflow.Context, suspended pregel.Value) segment.Request {
	s := &r.segments
	if r.loop.Step() == r.suspectStep {
		for _, t := range r.tasks.queue {
			s.suspect.Tasks = append(s.suspect.Tasks, t.Key())
		}
	}
	req := segment.Request{
		Graph: r.in.Graph, Thread: workflow.GetInfo(ctx).WorkflowExecution.ID, Print: r.print(), Loop: suspended,
		Durability: r.durability(), Context: r.in.Context, Requester: r.in.Requester, OriginalRunID: workflow.GetInfo(ctx).OriginalRunID,
		Suspect: s.suspect, Behind: r.behind(ctx), LedgerBytes: maxLedgerBytes, MaxConcurrency: r.in.MaxConcurrency, StepTimeout: r.in.StepTimeout,
		ResumeBefore: r.resumeBefore(),
	}
	r.inputs.shortenSegment(ctx, &req, &s.spec, r.in.Spec)
	return req
}

// print is the fingerprint of the graph that the run goes on with.
func (r *run) print() string {
	s := &r.segments
	if s.print == "" {
		print, err := graphadapter.Fingerprint(r.in.Spec)
		if err != nil {
			panic("superstep: a spec that was compiled is always JSON: " + err.Error())
		}
		s.print = print
	}
	return s.print
}

func (r *run) segmentOptions(first *pregel.Task) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		// As with a task's activity: an engine that now comes to another place gives another id on replay.
		ActivityID:          fmt.Sprintf("segment %d/%s", r.segments.count, protocol.ActivityID(first)),
		StartToCloseTimeout: attemptBound,
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryInterval, BackoffCoefficient: 2, MaximumInterval: maxRetryInterval,
		},
		Summary: fmt.Sprintf("steps from %d", r.loop.Step()),
	}
}

// segmentEnded reports whether a segment has come back.
func (r *run) segmentEnded() bool { return r.segments.under != nil && r.segments.under.result != nil }

// news reports whether something arrived that a segment under way must not go past: ctx is the run's.
func (r *run) news(ctx workflow.Context) bool {
	under := r.segments.under
	return under != nil && !under.interrupted &&
		(ctx.Err() != nil || len(r.life.Given) > 0 || r.life.Drain != "" || r.life.State.Paused != nil)
}
