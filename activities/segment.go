package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/segment"
)

// Segment is the activity of consecutive supersteps of a run. It is registered by segment.SegmentActivity, which is
// the name of no node. What it returns is read by segment.DecodeResult.
//
// In sync mode a superstep begins when the outcomes of the one before are stored, by a heartbeat that blocks; in async
// mode they are stored in the background; in exit mode with the segment's end. A repeated execution goes on behind what
// is stored. Errors are as those of [Nodes.Run]: another worker takes the segment over.
func (n *Nodes) Segment(ctx context.Context, req segment.Request) ([]byte, error) {
	defer n.openings.during()()
	e := &segmentRun{req: req, info: activity.GetInfo(ctx), graph: n.byName[req.Graph], nodes: n, began: time.Now(),
		exit: newExit()}
	e.keeper.last = e.began
	e.lease = &lease{client: n.client, info: e.info, began: e.began, details: e.details, asked: e.asked}
	if err := e.read(ctx); err != nil {
		return nil, err
	}
	if e.takeOver(); e.opened != nil {
		defer e.opened.end(graphadapter.ErrFenced) // unless it has ended
	}
	if e.graph == nil {
		return nil, e.givenBack(ctx, graphadapter.NodeUnservedType,
			fmt.Errorf("this worker does not serve the graph %q", req.Graph))
	}
	return e.run(ctx)
}

// segment is one execution of a segment by this worker.
type segmentRun struct {
	*lease
	*host.Tally
	req   segment.Request
	info  activity.Info
	graph *graphadapter.Graph // nil when this worker does not have it
	nodes *Nodes
	began time.Time
	// opened is the segment as it was opened on this worker; nil when it begins here.
	opened *opening

	// What the executions before left.
	repeated bool
	progress graphadapter.Progress
	record   []byte
	known    []segment.Delivery

	*exit

	mu        sync.Mutex
	running   *segment.Segment // nil until it is opened
	frozen    []any            // see freeze; nil while it is not
	describes bool
	end       context.CancelCauseFunc
	keeper    keeper
}

// takeOver takes the segment as it was opened on this worker, if it was and no execution has begun since.
func (e *segmentRun) takeOver() {
	if e.repeated {
		return
	}
	if e.opened = e.nodes.openings.take(openingOf(e.info, e.info.ActivityID)); e.opened != nil {
		e.exit = e.opened.exit
	}
}

// read takes in what earlier executions of the activity left.
func (e *segmentRun) read(ctx context.Context) error {
	e.repeated = e.info.Attempt > 1 || e.reset()
	// What a reset took back may have gone further than any record tells.
	e.req.Suspect.All = e.req.Suspect.All || e.reset()
	e.Tally = host.NewTally(e.info.Attempt, e.progress)
	if !activity.HasHeartbeatDetails(ctx) {
		return nil
	}
	e.repeated = true
	err := activity.GetHeartbeatDetails(ctx, &e.progress, &e.record)
	e.lease.before = e.progress.Beat
	if err == nil {
		e.known, err = segment.DecodeRecord(e.record)
	}
	if err != nil {
		return fmt.Errorf("the progress of an earlier execution cannot be read: %w", err)
	}
	e.Tally = host.NewTally(e.info.Attempt, e.progress)
	return nil
}

// reset reports whether the run was reset.
func (e *segmentRun) reset() bool { return e.req.OriginalRunID != e.info.WorkflowExecution.RunID }

// run keeps the segment's lease while its supersteps run, and sorts out how it ended.
func (e *segmentRun) run(ctx context.Context) (encoded []byte, end error) {
	counted := e.Counted()
	if counted < graphadapter.MostLosses { // else a person is asked
		release, err := e.onTrial(ctx, e.Tally)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	// What ends in order, with the run or this worker, ends the supersteps by itself.
	again := e.recovers(ctx, e.Tally, e.req.Graph)
	defer func() { again.ended(end) }()
	held, release := e.hold(context.WithoutCancel(ctx), e.Tally)
	defer release()
	held, stop := context.WithCancelCause(held)
	defer stop(nil)
	e.ends(stop)
	defer e.watch(ctx)()
	result, err := e.supersteps(ctx, held, counted)
	if err == nil {
		err = e.Lost() // a node that was told so has failed for that alone, which is no result
	}
	if err != nil {
		return nil, e.ended(ctx, err)
	}
	encoded, err = result.Encode()
	if err == nil {
		err = e.hand(held, e.nodes.converter, encoded, len(encoded))
	}
	if err != nil && !errors.Is(err, activity.ErrResultPending) {
		return nil, e.ended(ctx, err)
	}
	return encoded, err
}

// supersteps runs the segment, or waits for the one that was opened on this worker.
func (e *segmentRun) supersteps(ctx, held context.Context, counted int) (segment.Result, error) {
	defer e.keeper.stop()
	if e.opened != nil {
		e.runs(e.opened.running)
		return e.opened.goOn(held, e)
	}
	if err := e.fill(held); err != nil {
		return segment.Result{}, err
	}
	running, err := segment.OpenSegment(e.graph, &e.req, e.repeated, e.known, e.progress.Tasks)
	if err != nil {
		return segment.Result{}, err
	}
	e.runs(running)
	// What a reset took back may have gone further than any record tells.
	env := &taskEnv{nodes: e.nodes, ctx: ctx, info: e.info, graph: e.req.Graph, thread: e.req.Thread, lease: e, repeated: e.repeated, reset: e.reset(),
		trace: e.req.Trace, activity: e.info.ActivityID, number: e.info.Attempt}
	if e.IsBehindLoss() {
		env.begins = running.Begins()
	}
	held = context.WithValue(held, outputsKey{}, e.nodes.outputsOf(e.info.Namespace))
	return running.Run(held, segment.Host{
		Keep: e.keep, Leave: e.leave, Prepare: env.prepare, Refuse: refuser(&e.req, running, counted), Now: e.Now, Over: env.over,
		MostBytes: e.nodes.mostReturned(),
	})
}

// ends notes what ends the supersteps. Heartbeats go out by then, and the reply to one may ask for it.
func (e *segmentRun) ends(by context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end = by
}

// runs notes what runs.
func (e *segmentRun) runs(running *segment.Segment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = running
}

// fill gets what the request goes without.
func (e *segmentRun) fill(ctx context.Context) error {
	if err := e.req.Serves(e.graph); err != nil || len(e.req.References) == 0 {
		return err
	}
	if e.nodes.inputs == nil {
		return errors.New("its nodes are registered without inputs (Nodes.WithInputs)")
	}
	run := e.lease.run()
	err := e.nodes.inputs.fillIn(ctx, run, e.req.References, e.req.Fill)
	if err != nil && ctx.Err() == nil {
		return &InputError{Graph: e.req.Graph, Thread: e.req.Thread, Run: run.RunID, Err: err}
	}
	return err
}

// details is what a heartbeat carries. In exit mode it is life and a count.
func (e *segmentRun) details() []any {
	e.mu.Lock()
	running, progress, record, frozen := e.running, e.progress, e.record, e.frozen
	e.mu.Unlock()
	switch {
	case frozen != nil:
		return frozen
	case running == nil: // what there was before
		now := e.Tally.Progress(false)
		now.Tasks = progress.Tasks
		return []any{now, record}
	case e.req.Durability == graphadapter.DurabilityExit:
		return []any{e.Tally.Progress(false), []byte(nil)}
	}
	tasks := running.Left() // before the record: see there
	stored, deliveries := running.Record()
	now := e.Tally.Progress(deliveries > len(e.known))
	now.Tasks = tasks
	return []any{now, stored}
}

// keep makes durable what the segment has, as its mode asks. In async and exit mode, too, it waits for the server when that
// has said nothing for some time: what must take effect before the next superstep is known then.
func (e *segmentRun) keep(ctx context.Context) error {
	switch mode := e.req.Durability; {
	case !graphadapter.IsRelaxed(e.req.Durability):
		return e.Store(ctx)
	case e.silence() >= keepEvery:
		_ = e.Send(ctx) // one that fails is followed by the next
	case mode == graphadapter.DurabilityAsync:
		e.keeper.nudge(e.lease)
	}
	return e.Lost()
}

// ended turns an error into the activity's: somebody else goes on.
func (e *segmentRun) ended(ctx context.Context, err error) error {
	var input *InputError
	switch {
	case isSuspended(err):
		return e.givenBack(context.WithoutCancel(ctx), graphadapter.NodeStoppedType, errors.New("an operator paused or reset the activity; the task runs again"))
	case errors.Is(err, graphadapter.ErrFenced), e.Lost() != nil:
		return e.endedBy(graphadapter.NodeStoppedType, errors.New("another execution took this segment over"))
	case ctx.Err() != nil:
		return e.givenBack(context.WithoutCancel(ctx), graphadapter.NodeStoppedType, errors.New("this worker stops; another one takes the segment over"))
	case errors.As(err, &input):
		return e.givenBack(ctx, graphadapter.NodeInputType, err)
	}
	return e.givenBack(ctx, graphadapter.NodeUnservedType, err)
}

// givenBack ends this execution without a word about the tasks: another worker takes them.
func (e *segmentRun) givenBack(ctx context.Context, kind string, err error) error {
	if unsent := e.countGivenBack(ctx, e.Tally); unsent != nil {
		err = errors.Join(err, unsent)
	}
	return e.endedBy(kind, err)
}

// endedBy is the activity's error. What is stored goes along: when the run asked the activity to stop, this is its last
// word.
func (e *segmentRun) endedBy(kind string, err error) error {
	return temporal.NewApplicationErrorWithOptions(err.Error(), kind, temporal.ApplicationErrorOptions{
		Cause: err, Details: e.details(),
	})
}
