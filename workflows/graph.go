package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// run is one execution of the Graph workflow.
type run struct {
	in      protocol.GraphInput   // its settings are those of the newest invocation
	sink    graphadapter.Recorder // nil in workers
	program *pregel.Program
	// served is the graph as this worker serves it, nil where a run is read. Only validators, which are never replayed,
	// may look at it.
	served *graphadapter.Graph
	// heads signs the end of the audit for queries; nil for nobody.
	heads approval.HeadSigner
	// governs says whether what is done to runs is under rules on this worker; nil says no. Only validators, which are never
	// replayed, and side effects may ask.
	governs func() bool
	thread  *pregel.Thread
	// newest is the thread's newest state while an invocation goes on with an earlier one; nil otherwise.
	newest  *pregel.Thread
	loop    *pregel.Loop    // nil when the state was updated since it ended
	observe pregel.Observer // the loop's
	status  string
	failure error
	// refused says that the engine refused what the run was to go on with: it never began.
	refused bool
	drained string // why the run was asked to stop, and did
	// invoked says that an invocation is under way, and base is the checkpoint at which it began.
	invoked bool
	base    string
	// beganIn is the run in which that was, or this one.
	beganIn string
	// suspectStep is the superstep whose tasks may have acted in an earlier run; -1 for none.
	suspectStep int
	// behindFrom is when a run of the thread ended badly, or this one failed and was held open; zero for never.
	behindFrom time.Time

	tasks    window
	segments segments
	clock    clock
	results  []result
	inbox    inbox
	lines    lines
	inputs   inputs
	life     *life.Run
	host     lifeHost
	listed   listed
	notices  notices
	updates  int // that were begun, for the ids of their activities
	// idleEnds is when the run, kept open with nothing to do, ends; idled says that it is then.
	idleEnds time.Time
	idled    bool
	// successor ends the run with one that continues it, once it is set. notContinued is why it could not be, and heldBack
	// the number of events below which that is not tried again.
	successor    error
	notContinued error
	heldBack     int
}

// Graph runs a thread of a graph: superstep by superstep, a node's task as an activity, an interrupt as a question that
// waits for its answer without a process. It ends when nothing is left to run. When a node fails for good it ends as
// failed, with everything that a retry needs in its last event; a run that is to be held then waits for that retry.
func (g *Graphs) Graph(ctx workflow.Context, in protocol.GraphInput) (*protocol.GraphResult, error) {
	problem := in.Problem()
	if problem != "" && in.State == nil {
		return nil, badInput(ctx, &in, problem)
	}
	r := &run{in: in, sink: g.sink, status: protocol.StatusRunning, suspectStep: -1}
	r.segments.suspect = in.Suspects
	if in.Carried == nil {
		in.Life.Refused = nil // of the run before
	}
	r.life = life.New(workflow.GetInfo(ctx).WorkflowExecution.ID, in.Graph, r, in.Life)
	r.behindFrom = behindFrom(&in, workflow.GetInfo(ctx).WorkflowStartTime)
	r.lines = lines{run: workflow.GetInfo(ctx).WorkflowExecution.RunID, kept: in.Lines}
	r.inputs.values = g.values
	var begun beginning
	r.program, begun = g.program(ctx, &r.in)
	r.served, r.heads = g.byName[in.Graph], g.heads
	r.listed.Listing = list(ctx, &r.in, begun)
	r.governs = g.governs
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := workflow.WithCancel(ctx)
	r.host.alive, r.host.end = ctx, cancel
	if err := r.handle(ctx); err != nil {
		return nil, err
	}
	r.openNotices(ctx)
	switch {
	case in.Carried != nil:
	case in.Cancel != nil:
		return nil, r.cancelledBefore(ctx)
	default:
		r.begin(ctx, cmp.Or(problem, begun.Problem))
	}
	for {
		r.runTasks(ctx)
		if r.successor == nil {
			r.ended(ctx)
		}
		switch {
		case r.successor != nil:
			return nil, r.successor
		case ctx.Err() != nil && r.status == protocol.StatusFinished && r.life.CancelMode() == protocol.CancelKeep:
			return r.finished(ctx) // it was only kept open
		case ctx.Err() != nil:
			return nil, r.cancelled(ctx)
		case r.failure != nil && !r.heldOpen():
			return nil, r.failed(ctx)
		case r.nothingLeft() && !r.staysOpen():
			return r.finished(ctx)
		}
		if r.rest(ctx) {
			r.goOn(ctx)
		}
	}
}

// open reads the state that the run continues.
func (r *run) open(ctx workflow.Context) (err error) {
	r.thread = pregel.NewThread()
	if r.in.State != nil {
		r.thread, err = r.program.DecodeThread(r.in.State)
	}
	if err == nil && r.in.Newest != nil {
		r.newest, err = r.program.DecodeThread(r.in.Newest)
	}
	switch {
	case err == nil && r.in.Carried != nil:
		err = r.carryOn(ctx, r.in.Carried)
	case err == nil:
		r.life.Reopen(r.program.OpenQuestions(r.thread))
	}
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), protocol.ErrTypeRunFailed, err)
	}
	return nil
}

// begin does what the run was started for: a run of the engine, or updates of the state.
func (r *run) begin(ctx workflow.Context, problem string) {
	if name := r.in.Settings().UnknownNode(r.in.Spec); problem == "" && name != "" {
		problem = fmt.Sprintf("the breakpoint at %q: there is no such node, there are %s", name, protocol.NodeNames(r.in.Spec))
	}
	if problem != "" {
		r.failure, r.refused = protocol.Refuse(protocol.ErrTypeBadInput, "%s", problem), true
		return
	}
	if r.failure = r.provenBegin(ctx); r.failure != nil {
		r.refused = true
		return
	}
	if len(r.in.Edits) > 0 {
		_, r.failure = r.update(ctx, protocol.UpdateStateRequest{Edits: r.in.Edits, Within: r.in.Within, Asked: r.in.Asked})
		r.refused = r.failure != nil
		return
	}
	r.answer(ctx, "", pregel.Input(r.in.Input), r.in.Replay, r.in.Asked, r.in.Suspect)
	if r.in.Suspect {
		r.suspect()
	}
}

// answer is start by a request whose answers are noted. Those of an input that the engine refuses count for nothing: the
// questions are open, and may be answered again.
func (r *run) answer(ctx workflow.Context, request string, in pregel.Input, replay bool, by *protocol.Asked, failed bool) {
	if r.failure = r.ungated(in.Resume); r.failure != nil {
		r.status, r.drained, r.loop, r.refused = protocol.StatusRunning, "", nil, true
		return
	}
	given := life.AnswersTo(r.program.OpenQuestions(r.thread), in.Resume)
	begins := life.Beginning{Failed: failed, Input: in}
	if replay {
		begins.Checkpoint = headID(r.thread)
	}
	for _, a := range given {
		begins.Answered = append(begins.Answered, a.QuestionID)
	}
	forget := r.life.Accept(request, given, workflow.Now(ctx))
	r.start(ctx, in, replay)
	if r.loop == nil {
		forget()
		return
	}
	r.auditBegin(ctx, by, begins)
}

// ungated refuses answers to approvals that come with a run's input: they would pass no gate.
func (r *run) ungated(resume *pregel.Resume) error {
	open := r.program.OpenQuestions(r.thread)
	for _, a := range life.AnswersTo(open, resume) {
		for _, q := range open {
			if q.ID == a.QuestionID && q.Approval != nil {
				return refused(life.InputRefusal(q, a.Value))
			}
		}
	}
	return nil
}

// start begins a run of the engine. An input that it refuses leaves the thread as it was, and no loop.
func (r *run) start(ctx workflow.Context, in pregel.Input, replay bool) {
	r.status, r.drained = protocol.StatusRunning, ""
	// A lost segment may have come further than where the run stands: see settleSuspicion.
	r.segments = segments{count: r.segments.count, suspect: r.segments.suspect}
	r.began(ctx, r.durability())
	r.observe = r.observer(ctx)
	r.loop, r.failure = r.program.Start(r.thread, in, r.options(), replay, r.observe)
	r.refused = r.loop == nil
}

// options are those of the newest invocation.
func (r *run) options() pregel.Options {
	options := r.in.Options
	if options.RecursionLimit == 0 {
		options.RecursionLimit = graphadapter.DefaultRecursionLimit
	}
	return options
}

// stands is where the thread stands.
func (r *run) stands() pregel.Status {
	switch {
	case r.failure != nil:
		return pregel.StatusFailed
	case r.loop != nil && r.loop.Status() == pregel.StatusRunning:
		return pregel.StatusFailed // cancelled under way
	case r.loop != nil:
		return r.loop.Status()
	case len(r.program.OpenQuestions(r.thread)) > 0:
		return pregel.StatusWaiting
	case r.thread.Head != nil && len(r.program.Next(r.thread.Head)) > 0:
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
