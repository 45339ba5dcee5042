package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/workflows/protocol"
)

// segments are the activities that run consecutive supersteps of a run. The run keeps its own loop: what a segment brings
// back is delivered to it, outcome by outcome, so that there is one interpretation of what happened. While one is under
// way nothing else is.
type segments struct {
	*engine
	life   *life.Run
	tasks  *tasks
	inputs *inputs
	doubt  *suspicion
	counts *counted

	under *segmentRun // nil for none
	count int         // that were begun, for their ids
	// delivering says that the outcomes of one that has ended are being taken in.
	delivering bool
	// apart says that the tasks in the queue are not for a segment, whatever else speaks for one.
	apart bool
	// expired is set when the superstep under way ran out of time in a segment.
	expired *graphadapter.StepTimeoutError
	spec    known
	// opens says that the next segment begins within a workflow task: it is the first of what the run was given to do, or all before it
	// came through within theirs.
	opens bool
	// came is the position at which the last one of those came through; follows says that its worker can have the next workflow task
	// follow at once, by which what came through is stored; nextTask makes it do that, nil where runs are only read.
	came     int64
	follows  bool
	nextTask func(namespace, thread string)
	// began is when the run was given what it does now.
	began time.Time
	// again says that this worker took the run over, perhaps from one that the run's nodes took along. No command follows
	// from it.
	again bool
}

// segment is one that is under way.
type segmentRun struct {
	id      string
	request segment.Request  // of its activity, until that is scheduled
	ready   []*pregel.Task   // those that the loop had handed out
	from    pregel.Frozen    // the run as it was handed over
	ctx     workflow.Context // of its activity
	cancel  workflow.CancelFunc
	// opening is its first half second, nil when that is over; activity is the rest, nil before.
	opening, activity workflow.Future
	// interrupted says that it was asked to leave, and stored is what it had stored before; unread, that nobody could say.
	interrupted, unread bool
	stored              segment.Stored
	result              *segment.StoredResult // nil until it has been read
	// lost says that it ended without a result of its own; unbegun, that no worker ever began it.
	lost, unbegun bool
}

// reset forgets what was known of the invocation before.
func (s *segments) reset(ctx workflow.Context) {
	s.apart, s.expired, s.opens, s.began = false, nil, true, workflow.Now(ctx)
}

// firstTaskEvents is the most events that a history has when its first workflow task begins: the run's start, two signals
// that came with it, and the task. One that timed out before leaves more.
const firstTaskEvents = 5

// takenOver reports whether this worker begins with a run that another worker had, or at which one has failed.
func takenOver(ctx workflow.Context) bool {
	return workflow.IsReplaying(ctx) || workflow.GetInfo(ctx).GetCurrentHistoryLength() > firstTaskEvents
}

// fuses reports whether the queued tasks are for a segment: the run's durability asks for segments, or the only task begins
// within this workflow task; nothing else is under way, and all of the tasks are for the run's own task queue.
func (s *segments) fuses(ctx workflow.Context) bool {
	if s.beside() || s.single() && !(s.mayOpen(ctx) && s.stored(ctx) && len(s.tasks.queue) == 1) {
		return false
	}
	pinned := segment.IsPinned(s.program, s.tasks.queue)
	if pinned { // no segment has gone past here
		s.doubt.Suspicion = segment.Suspicion{Lost: s.doubt.Lost}
	}
	return !pinned
}

// beside reports whether the queued tasks are not for a segment, because of what is under way or of what they are.
func (s *segments) beside() bool {
	return s.apart || s.tasks.running > 0 || len(s.tasks.results) > 0 || len(s.tasks.queue) == 0
}

// waits reports whether the queued tasks are to begin in the workflow task that follows this one: a segment came through within this
// one, and is stored with it. Two of them together might take longer than a workflow task should.
func (s *segments) waits(ctx workflow.Context) bool {
	return s.follows && !s.beside() && (!s.single() || len(s.tasks.queue) == 1) && s.mayOpen(ctx) && !s.stored(ctx) && !segment.IsPinned(s.program, s.tasks.queue)
}

// stored reports whether what came through within a workflow task is stored: the run is in a later one.
func (s *segments) stored(ctx workflow.Context) bool { return position(ctx) > s.came }

// awaitStored waits for the next workflow task, which the worker has follow at once: ctx is not cancelled with the run.
func (s *segments) awaitStored(ctx workflow.Context) {
	if info := workflow.GetInfo(ctx); s.nextTask != nil && !workflow.IsReplaying(ctx) {
		s.nextTask(info.Namespace, info.WorkflowExecution.ID)
	}
	_ = workflow.Await(ctx, func() bool { return s.stored(ctx) })
	GiveWay(ctx)
}

// single reports whether each superstep is a segment of its own, if it is one at all: none begins before the one before is stored
// with the run.
func (s *segments) single() bool {
	_, fused := s.mode()
	return !fused && !s.relaxed()
}

// mayOpen reports whether the next segment begins within a workflow task.
// What an execution that was lost may have run is looked at in an activity.
func (s *segments) mayOpen(ctx workflow.Context) bool {
	return s.opens && s.doubt.ago(ctx) == 0 && s.doubt.none()
}

// start hands the run over until it comes back. It reports false when the run is too large for that.
func (s *segments) start(ctx workflow.Context) bool {
	first := s.tasks.queue[0]
	here, ready, err := segment.HandOver(s.loop, s.tasks.queue, (*pregel.Loop).Freeze)
	s.tasks.queue = ready
	if err != nil || here.Size() > s.mostHanded(ctx) {
		workflow.GetLogger(ctx).Warn("the run is not handed to a segment", "bytes", here.Size(), "error", err)
		s.apart = true
		return false
	}
	req := s.request(ctx)
	s.count++
	// The run's own end cancels it too, but not before what it stored is known: see interrupt.
	apart, _ := workflow.NewDisconnectedContext(ctx)
	segmentCtx, cancel := workflow.WithCancel(apart)
	options := s.activityOptions(first)
	under := &segmentRun{id: options.ActivityID, request: req, ready: s.tasks.queue, from: here,
		ctx: workflow.WithActivityOptions(segmentCtx, options), cancel: cancel}
	s.under, s.tasks.queue = under, nil
	if s.mayOpen(ctx) && (s.relaxed() || s.stored(ctx)) { // an activity begins when the workflow task is stored
		under.opening = s.open(apart, segment.Opening{Request: req, Run: here, ActivityID: under.id})
	} else {
		s.execute(apart)
	}
	s.opens = false
	return true
}

// goOn takes in what has come back of the segment under way: the end of its opening, behind which it goes on in its activity unless it
// came through, or its end. ctx is not cancelled with the run.
func (s *segments) goOn(ctx workflow.Context) {
	if !s.moved() {
		return
	}
	var encoded []byte
	under := s.under
	if s.opening() {
		if err := under.opening.Get(ctx, &encoded); err != nil {
			workflow.GetLogger(ctx).Warn("the segment begins in its activity", "error", err)
		}
		under.opening = nil
		if len(encoded) == 0 {
			s.execute(ctx)
			return
		}
		s.opens, s.came = true, position(ctx)
	} else if err := under.activity.Get(ctx, &encoded); err != nil {
		under.result = &segment.StoredResult{Result: s.lost(under, err)}
		return
	}
	result, err := segment.DecodeResult(encoded)
	if err != nil {
		panic(err.Error())
	}
	under.result, s.follows = result, result.Follows
	s.opens = s.opens && (s.follows || s.single())
}

// mostStrict bounds the state of a run that is handed to segments of sync mode: what a superstep there makes of it may fill the
// segment's record, and to hand all of it over again each time costs more than an activity for each task. A segment of one superstep
// is handed over once, and one that opens mostly stays within the worker's process.
const mostStrict = 8 << 20

func (s *segments) mostHanded(ctx workflow.Context) int {
	if s.relaxed() || s.single() || s.mayOpen(ctx) {
		return maxReferred
	}
	return mostStrict
}

// openingBound bounds a segment's opening, which ends by itself much earlier: it is for a worker that stands still.
const openingBound = 5 * time.Second

// open runs the first half second of a segment within this workflow task. What comes of it is empty when the segment goes on in its
// activity.
func (s *segments) open(ctx workflow.Context, o segment.Opening) workflow.Future {
	o.At = s.now(ctx) // before the local activity
	// An argument is not stored: it may depend on the worker.
	if !s.servesOwn() {
		o.Request.Spec = s.in.Spec
	}
	if !workflow.IsReplaying(ctx) {
		o.Again, s.again = s.again, false
	}
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: openingBound, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	return workflow.ExecuteLocalActivity(local, segment.OpeningActivity, o)
}

// execute schedules the activity of the segment under way.
func (s *segments) execute(ctx workflow.Context) {
	under, err := s.under, error(nil)
	if under.request.Loop, under.ready, err = segment.HandOver(s.loop, under.ready, (*pregel.Loop).Suspend); err != nil {
		panic(err.Error())
	}
	if sink, ok := s.sink.(graphadapter.SegmentRecorder); ok && under.request.Durability != graphadapter.DurabilityExit {
		sink.Handed(under.id, s.program, under.request.Loop)
	}
	s.inputs.shortenSegment(ctx, &under.request, &s.spec, s.in.Spec)
	under.activity = workflow.ExecuteActivity(under.ctx, segment.SegmentActivity, under.request)
	under.request = segment.Request{} // a loop that is as large as the run is not kept
	s.tasks.late /= 2                 // nothing tells how late the next one is
}

// request is a segment's, without the run.
func (s *segments) request(ctx workflow.Context) segment.Request {
	if s.loop.Step() == s.doubt.step {
		for _, t := range s.tasks.queue {
			s.doubt.Tasks = append(s.doubt.Tasks, t.Key())
		}
	}
	return segment.Request{
		Graph: s.in.Graph, Thread: workflow.GetInfo(ctx).WorkflowExecution.ID, Print: s.print(),
		Durability: s.durability(), Context: s.in.Context, Requester: s.in.Requester, OriginalRunID: workflow.GetInfo(ctx).OriginalRunID,
		Suspect: s.doubt.Suspicion, Behind: s.doubt.ago(ctx), LedgerBytes: maxLedgerBytes, MaxConcurrency: s.in.MaxConcurrency, StepTimeout: s.in.StepTimeout,
		ResumeBefore: s.resumeBefore(), Single: s.single(), Trace: s.traced.String(),
	}
}

func (s *segments) activityOptions(first *pregel.Task) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		// As with a task's activity: an engine that now comes to another place gives another id on replay.
		ActivityID:          fmt.Sprintf("segment %d/%s", s.count, protocol.ActivityID(first)),
		StartToCloseTimeout: attemptBound,
		HeartbeatTimeout:    s.lostAfter + s.tasks.patience(),
		WaitForCancellation: true,
		RetryPolicy:         retries(),
		Summary:             fmt.Sprintf("steps from %d", s.loop.Step()),
	}
}

// opening reports whether the segment under way may end with this workflow task.
func (s *segments) opening() bool { return s.under != nil && s.under.opening != nil }

// ended reports whether a segment has come back.
func (s *segments) ended() bool { return s.under != nil && s.under.result != nil }

// moved reports whether something came back of the segment under way that has not been read.
func (s *segments) moved() bool {
	under := s.under
	switch {
	case under == nil || under.result != nil:
		return false
	case under.opening != nil:
		return under.opening.IsReady()
	}
	return under.activity.IsReady()
}

// behind reports whether a segment came back of which the run has not taken everything in.
func (s *segments) behind() bool { return s.delivering || s.ended() || s.moved() }

// news reports whether something arrived that a segment under way must not go past: ctx is the run's.
func (s *segments) news(ctx workflow.Context) bool {
	under := s.under
	return under != nil && !under.interrupted &&
		(ctx.Err() != nil || len(s.life.Given) > 0 || s.life.Drain != "" || s.life.State.Paused != nil)
}

// resumeBefore is how many supersteps of a segment the run delivers to its own loop at least, when it passes over those
// before: as many as it shows to the thread's next run. In exit mode that is the last checkpoint alone.
func (s *segments) resumeBefore() int {
	switch {
	case s.traced.tells(): // all that it did is told
		return 0
	case s.in.Spec.HasOwnReducers(): // each worker's own may differ, and only the run's own engine tells
		return 0
	case s.durability() == graphadapter.DurabilityExit:
		return 1
	}
	return protocol.CarriedLines
}

// passOver goes on from the resume point of a segment, if there is one: its state is what the outcomes before it come to, and the
// checkpoints that they made are made again for whoever asks. A reader of the run's history delivers all of them. It returns
// the outcomes that are to be delivered, and the tasks handed out.
func (s *segments) passOver(ctx workflow.Context, under *segmentRun) (segment.Result, []*pregel.Task) {
	point := under.result.Resume
	if point == nil || s.sink != nil {
		whole, err := under.result.Whole()
		if err != nil {
			panic(err.Error())
		}
		return whole, under.ready
	}
	loop, err := s.program.Restore(point.Loop, s.observe)
	if err != nil {
		panic(err.Error())
	}
	if s.durability() != graphadapter.DurabilityExit {
		at := s.now(ctx)
		s.checkpoints.passOver(func() []protocol.Line { return s.linesBefore(under, at) })
	}
	s.loop, s.thread = loop, loop.Thread()
	s.counts.passedOver(point.Deliveries)
	return under.result.Result, loop.Ready()
}

// linesBefore are the checkpoints that the outcomes before a segment's resume point made.
func (s *segments) linesBefore(under *segmentRun, at time.Time) []protocol.Line {
	made := checkpointLog{run: s.checkpoints.run}
	whole, err := under.result.Whole()
	if err != nil {
		panic(err.Error())
	}
	loop, err := under.from.Restore(s.program, func(e pregel.Event) {
		if e.Kind == pregel.EventCheckpoint && e.Namespace == "" {
			made.add(s.program, e.Checkpoint, at)
		}
	})
	if err == nil {
		_, err = segment.Redeliver(loop, loop.Ready(), whole.Deliveries[:under.result.Resume.Deliveries], nil)
	}
	if err != nil {
		panic(err.Error())
	}
	return made.lines
}
