package workflows

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/figures"
)

// How many outcomes are delivered before other coroutines have a turn: the SDK takes workflow code that does not yield for
// a second for a deadlock.
const (
	deliveriesAtOnce = 32
	// moreAtOnce are as many as take no longer, where each has to do with few bytes; bytesAtOnce bounds what all of them have
	// to do with, if each touches all of the state.
	moreAtOnce  = 1024
	bytesAtOnce = 4 << 20
)

// atOnce is how many of the outcomes are delivered in one go.
func (s *segments) atOnce(under *segmentRun, all []segment.Delivery) int {
	if s.in.Spec.HasOwnReducers() {
		return deliveriesAtOnce
	}
	bytes := under.from.Size()
	for i := range all {
		bytes += pregel.ResultBytes(&all[i].Outcome.Command, all[i].Outcome.Routes)
	}
	return min(max(deliveriesAtOnce, bytesAtOnce/max(bytes, 1)), moreAtOnce)
}

// deliver delivers what a segment brought back. An outcome that the run's own engine does not ask for stops the
// workflow task: another worker, with the same engine and reducers, goes on.
func (s *segments) deliver(ctx workflow.Context) {
	under := s.under
	s.under, s.delivering = nil, true
	defer func() { s.delivering = false }()
	s.counts.Add(figures.Segments, 1, map[bool]string{true: "lost", false: "returned"}[under.lost])
	result, ready := s.passOver(ctx, under)
	// What asks the run to stop counts before the outcome with which a superstep may end, but not for a superstep in which
	// tasks were under way.
	last := len(result.Deliveries) - 1
	if last <= 0 && len(result.Left) == 0 {
		s.drain(s.life.Drain)
	}
	if under.interrupted && s.life.Drops() {
		result.Deliveries = segment.DropLast(s.in.Graph, result.Deliveries)
	}
	atOnce := s.atOnce(under, result.Deliveries)
	if last >= 0 {
		s.traced.delivers(&result.Deliveries[0])
	}
	defer s.traced.delivers(nil)
	ready, apart, err := segment.TakeIn(s.loop, ready, &result, func(made int) {
		s.traced.delivers(&result.Deliveries[made])
		if made == last && len(result.Left) == 0 {
			s.drain(s.life.Drain)
		}
		if made%atOnce == 0 {
			GiveWay(ctx)
		}
	})
	if err != nil {
		panic(err.Error())
	}
	s.tasks.queue = append(s.tasks.queue, ready...)
	s.drain(s.life.Drain)
	if under.lost {
		result.Suspect = s.suspicionAfter(under, ready)
	}
	s.doubt.Suspicion = result.Suspect
	s.doubt.settle(s.engine)
	s.apart = apart
	if result.Expired {
		s.expired = &graphadapter.StepTimeoutError{Graph: s.in.Graph, Step: s.loop.Step(),
			Limit: time.Duration(s.in.StepTimeout) * time.Millisecond}
	}
}

// suspicionAfter is what a lost segment may have run, where ready are the first tasks that it stored no end of. In sync mode
// a superstep begins when the one before is stored, so it can only have been at those; in the others at any later one.
func (s *segments) suspicionAfter(under *segmentRun, ready []*pregel.Task) segment.Suspicion {
	suspect := s.doubt.Suspicion
	switch {
	case under.unbegun:
	case under.unread, s.relaxed():
		return segment.Suspicion{All: true, Lost: true}
	default:
		suspect.Tasks = nil
		for _, t := range ready {
			suspect.Tasks = append(suspect.Tasks, t.Key())
		}
	}
	return suspect
}

// mayHaveRun is what an execution may have run that the run will not hear of any more: for the thread's next run. A run that
// was ended from outside has something under way.
func (s *segments) mayHaveRun() segment.Suspicion {
	suspect := s.doubt.Suspicion
	if s.under != nil || s.tasks.running > 0 {
		suspect.All, suspect.Lost = suspect.All || s.under != nil, true
	}
	return suspect
}

// lost is what is known of a segment that ended without a result: what it stored last.
func (s *segments) lost(under *segmentRun, err error) segment.Result {
	var progress graphadapter.Progress
	var record []byte
	var ended *temporal.ActivityError
	var timeout *temporal.TimeoutError
	var failure *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	known := false
	under.lost = true
	switch {
	case !errors.As(err, &ended) && !errors.As(err, &cancelled): // it has a result that cannot be read here
		panic(err.Error())
	case errors.As(err, &timeout) && timeout.HasLastHeartbeatDetails():
		known = timeout.LastHeartbeatDetails(&progress, &record) == nil
	case errors.As(err, &failure) && failure.HasDetails():
		known = failure.Details(&progress, &record) == nil
	case errors.As(err, &cancelled): // no worker had it
		progress, record, known = under.stored.Progress, under.stored.Record, under.stored.Known
		under.unbegun = !under.unread && under.stored.Begun == 0
	}
	if !known {
		return segment.Result{}
	}
	deliveries, err := segment.DecodeRecord(record)
	if err != nil {
		under.unread = true
		return segment.Result{}
	}
	return segment.Result{Deliveries: deliveries, Left: progress.Tasks}
}

// mustEnd reports whether the tasks under way are to be told to end: step is the superstep's context.
func (t *tasks) mustEnd(step workflow.Context) bool {
	return !t.interrupted && t.running > 0 && step.Err() != nil
}

// interrupt tells the tasks under way to end: the run was cancelled, or the superstep is out of time.
//
// An activity that no worker has at that moment, because its last one was lost or gave it back, is cancelled by the server
// at once, and what it had stored is forgotten: with it the only trace of an effect that it called. So it is read before.
func (t *tasks) interrupt(ctx workflow.Context) {
	t.interrupted = true
	under := slices.Clone(t.under)
	workflow.Go(ctx, func(ctx workflow.Context) {
		if err := readTasks(ctx, under); err != nil {
			workflow.GetLogger(ctx).Error("what the tasks under way stored is not known; they are told to end all the same", "error", err)
		}
		for _, u := range under {
			u.cancel()
		}
	})
}

// readTasks reads what these have stored.
func readTasks(ctx workflow.Context, under []*underWay) error {
	var ids []string
	for _, u := range under {
		ids = append(ids, u.id)
	}
	all, err := readStored(ctx, ids)
	for _, u := range under {
		if stored, ok := all[u.id]; ok {
			u.stored = &stored
		}
	}
	return err
}

// The bounds of asking the server what a segment has stored. It is asked again and again, but does not keep a run from
// ending.
const (
	storedTimeout = 5 * time.Second
	storedWithin  = time.Minute
)

// interrupt makes the segment under way, if there is one, leave as soon as none of its tasks is: something arrived
// that it must not go past.
//
// An activity that no worker has at that moment, because its last one was lost or gave it back, is cancelled by the server
// at once, and what it had stored is forgotten. It is read before.
func (s *segments) interrupt(ctx workflow.Context) {
	under := s.under
	if under == nil || under.interrupted {
		return
	}
	under.interrupted = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		stored, err := readStored(ctx, []string{under.id})
		under.stored = stored[under.id]
		if err != nil {
			workflow.GetLogger(ctx).Error("what the segment stored is not known; it leaves all the same", "error", err)
		}
		under.unread = err != nil
		under.cancel()
	})
}

// readStored asks the server, in local activities, what the activities of these ids have stored, in as many pages as it takes.
func readStored(ctx workflow.Context, ids []string) (map[string]segment.Stored, error) {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: storedTimeout, ScheduleToCloseTimeout: storedWithin,
		RetryPolicy: retries(),
	})
	run, all := workflow.GetInfo(ctx).WorkflowExecution, map[string]segment.Stored{}
	for len(ids) > 0 {
		var page segment.StoredReply
		req := segment.StoredRequest{Thread: run.ID, Run: run.RunID, ActivityIDs: ids}
		if err := workflow.ExecuteLocalActivity(local, segment.StoredActivity, req).Get(ctx, &page); err != nil {
			return all, err
		}
		for _, id := range ids {
			if stored, ok := page.Stored[id]; ok {
				all[id] = stored
			}
		}
		ids = page.Rest
	}
	return all, nil
}
