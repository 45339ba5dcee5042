package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// engine is the thread of a run, and the loop that drives the thread. It has no part of Temporal.
type engine struct {
	in      protocol.GraphInput   // its settings are those of the newest invocation
	sink    graphadapter.Recorder // nil in workers
	program *pregel.Program
	picture string // of the program, as far as it was drawn before
	// served is the graph as this worker serves it, nil where a run is read. Only validators, which are never replayed,
	// may look at it, and what comes to the same without it.
	served *graphadapter.Graph
	// lostAfter is after how much silence a task's worker counts as lost: a setting of the worker that decides now, which no replay compares.
	lostAfter time.Duration
	lateNow   func() time.Duration // see Config.Late
	thread    *pregel.Thread
	// newest is the thread's newest state while an invocation goes on with an earlier one; nil otherwise.
	newest  *pregel.Thread
	loop    *pregel.Loop    // nil when the state was updated since it ended
	observe pregel.Observer // the loop's
	status  string
	failure error
	// refused says that the engine refused what the run was to go on with: it never began.
	refused bool
	drained string // why the run was asked to stop, and did
	// invoked says that an invocation is under way. It began at the checkpoint base, in the run beganIn.
	invoked       bool
	base, beganIn string
	// updates counts those that this run has taken: the server lets it have 2,000.
	updates     int
	checkpoints checkpointLog
	fingerprint string // of the run's Spec, once it was needed
	task        moment // see now
	traced      *traced
}

// ungated refuses answers to approvals that come with a run's input: they would pass no gate.
func (e *engine) ungated(resume *pregel.Resume) error {
	open := e.program.OpenQuestions(e.thread)
	for _, a := range life.AnswersTo(open, resume) {
		for _, q := range open {
			if q.ID == a.QuestionID && q.Approval != nil {
				return refused(life.InputRefusal(q, a.Value))
			}
		}
	}
	return nil
}

// beginning is what the thread goes on with; replay says that the thread stands at a checkpoint that was chosen, failed that its
// run failed.
func (e *engine) beginning(thread *pregel.Thread, in pregel.Input, replay, failed bool) life.Beginning {
	b := life.Beginning{Failed: failed, Input: in}
	if replay {
		b.Checkpoint = headID(thread)
	}
	for _, a := range life.AnswersTo(e.program.OpenQuestions(thread), in.Resume) {
		b.Answered = append(b.Answered, a.QuestionID)
	}
	return b
}

// options are those of the newest invocation.
func (e *engine) options() pregel.Options {
	options := e.in.Options
	if options.RecursionLimit == 0 {
		options.RecursionLimit = graphadapter.DefaultRecursionLimit
	}
	return options
}

// threadStatus is where the thread stands.
func (e *engine) threadStatus() pregel.Status {
	switch {
	case e.failure != nil:
		return pregel.StatusFailed
	case e.loop != nil && e.loop.Status() == pregel.StatusRunning:
		return pregel.StatusFailed // cancelled under way
	case e.loop != nil:
		return e.loop.Status()
	case len(e.program.OpenQuestions(e.thread)) > 0:
		return pregel.StatusWaiting
	case e.thread.Head != nil && len(e.program.Next(e.thread.Head)) > 0:
		return pregel.StatusBreakpoint
	}
	return pregel.StatusDone
}

// errorType names an engine error for programs.
func errorType(err error) string {
	var node *pregel.NodeError
	var application *temporal.ApplicationError
	switch {
	case errors.As(err, &node):
		return protocol.ErrTypeNodeFailed
	case errors.As(err, &application):
		return application.Type()
	}
	return protocol.ErrTypeRunFailed
}

// closeWithoutSuperstep leaves the thread as it stood before the superstep under way, when that fits: what its tasks had
// finished is more than a run's last event takes, and would take all of the state along. The next run looks up what they did
// outside, as it does behind any run that ended badly.
func (e *engine) closeWithoutSuperstep(c *protocol.Closing, thread *pregel.Thread, kept int) bool {
	before := thread.Copy()
	e.program.Drop(before)
	state, err := e.program.EncodeThread(before)
	if err != nil || len(state)+kept > e.in.Found.MaxState() {
		return false
	}
	c.State, c.Dropped = state, true
	c.Life.Due = nil // who waits again begins anew
	return true
}

// shortenLedgers leaves of what the tasks under way did outside that it was done: what a thread of many such tasks could
// not store. Receipts are looked up when they are needed again, results that were only remembered are made again.
func (e *engine) shortenLedgers(thread *pregel.Thread) {
	e.program.ShortenLedgers(thread, func(stored pregel.Value) pregel.Value {
		if short, err := graphadapter.SlimLedger(stored); err == nil {
			return short
		}
		return stored
	})
}

// failureOf is why a run failed, as data.
func failureOf(graph string, err error) *pregel.NodeError {
	failure := pregel.AsNodeError(graph, "", err)
	var named interface{ ErrorType() string }
	if errors.As(err, &named) {
		failure.Type = named.ErrorType()
	}
	return failure
}

func stepOf(t *pregel.Thread) int {
	if t.Head == nil {
		return 0
	}
	return t.Head.Checkpoint.Step
}

func (e *engine) output() map[string]pregel.Value {
	switch {
	case e.loop != nil:
		return e.loop.Output()
	case e.failure != nil:
		return nil // the engine refused the input
	}
	return e.program.Output(e.thread)
}

// earlier reads a state of the thread that a client chose, or copies the newest. What is made from it is numbered on
// from what the thread has, so that no two checkpoints have one id.
func (e *engine) earlier(state pregel.Value) (*pregel.Thread, error) {
	if state == nil {
		return e.thread.Copy(), nil
	}
	thread, err := e.program.DecodeThread(state)
	if err != nil {
		return nil, err
	}
	thread.After(e.thread)
	return thread, nil
}

// mode is the run's durability, and whether its supersteps are fused in sync mode too.
func (e *engine) mode() (graphadapter.Durability, bool) {
	return graphadapter.ModeOf(e.program.Spec, e.in.Durability, e.in.Fused)
}

func (e *engine) durability() graphadapter.Durability {
	d, _ := e.mode()
	return d
}

// relaxed reports whether what a superstep did may be stored later than the next begins.
func (e *engine) relaxed() bool { return graphadapter.IsRelaxed(e.durability()) }

// print is the fingerprint of the graph that the run goes on with.
func (e *engine) print() string {
	if e.fingerprint == "" {
		print, err := e.fingerprintOf(e.in.Spec)
		if err != nil {
			panic("superstep: a spec that was compiled is always JSON: " + err.Error())
		}
		e.fingerprint = print
	}
	return e.fingerprint
}

// servesOwn reports whether this worker serves the graph as the run has it, which a segment then needs not be sent.
func (e *engine) servesOwn() bool {
	if e.served == nil {
		return false
	}
	print, err := e.served.Fingerprint()
	return err == nil && print == e.print()
}

// fingerprintOf is [graphadapter.Fingerprint].
func (e *engine) fingerprintOf(spec *pregel.Spec) (string, error) {
	if e.served != nil && e.served.Has(spec) {
		return e.served.Fingerprint() // which was made once
	}
	return graphadapter.Fingerprint(spec)
}

// nothingLeft reports whether nothing is left to do.
func (e *engine) nothingLeft() bool { return e.threadStatus() == pregel.StatusDone }

// heldOpen reports whether the run, which failed, waits for somebody to retry it. One whose history is full cannot: its
// retry is a run of its own. Nor does one that never began, because the engine refused its input.
func (e *engine) heldOpen() bool {
	var full *HistoryFullError
	return e.in.Hold && e.failure != nil && !e.refused && !errors.As(e.failure, &full)
}

// drain asks the engine to stop before its next superstep, when somebody asked the run.
func (e *engine) drain(why string) {
	if why != "" {
		e.loop.Drain(why)
	}
}

// refuseBad turns a message away that the engine refuses; before says what became of the thread, "" for nothing to say.
// The engine's error goes along, so that whoever sent the message knows of what kind it is.
func (e *engine) refuseBad(before string, err error) error {
	return temporal.NewNonRetryableApplicationError(before+err.Error(), protocol.ErrTypeBadUpdate, nil, pregel.AsNodeError(e.in.Graph, "", err))
}

// position is where the run's history stands: the id of the event with which its current workflow task started. A
// replay comes to the same positions as the run did.
func position(ctx workflow.Context) int64 {
	return int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
}

// now is the time of the event at the run's position: a reader of the history dates what comes there by that. The
// workflow's own clock goes on with each local activity of a workflow task.
func (e *engine) now(ctx workflow.Context) time.Time {
	if at := position(ctx); e.task.at != at {
		e.task = moment{at, workflow.Now(ctx)}
	}
	return e.task.time
}

// moment is when a run came to a position.
type moment struct {
	at   int64
	time time.Time
}

// settle gives the thread its newest state back when an invocation from an earlier one made no checkpoint.
func (e *engine) settle() {
	if e.newest == nil {
		return
	}
	was := e.thread
	e.thread, e.newest = pregel.Newer(e.newest, e.thread), nil
	if e.thread != was && e.threadStatus() != pregel.StatusDone {
		e.loop = nil // what it stands at is no longer the thread's
	}
}

// since is when the run began, or the first of those that it continues as new ones.
func (e *engine) since(info *workflow.Info) time.Time {
	if e.in.Carried != nil && !e.in.Carried.Since.IsZero() {
		return e.in.Carried.Since
	}
	return info.WorkflowStartTime
}

func headID(t *pregel.Thread) string {
	if t.Head == nil {
		return ""
	}
	return t.Head.Checkpoint.ID
}
