package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/tracing"
	"superstep.dev/workflows/protocol"
)

// run is one execution of the Graph workflow: it connects what the run is made of, and decides what comes next.
type run struct {
	*report
	doubt    *suspicion
	room     *room
	segments *segments
	updates  *updates
	waiters  *waiters
	clock    clock
	// idleEnds is when the run, kept open with nothing to do, ends; idled says that it is then.
	idleEnds time.Time
	idled    bool
	idle     deadline // wakes it then, or earlier
	// successor ends the run with one that continues it, once it is set.
	successor error
}

// newRun is the run of that input on this worker.
func (g *Graphs) newRun(ctx workflow.Context, in protocol.GraphInput, counts *counted) (*run, beginning) {
	info := workflow.GetInfo(ctx)
	e := &engine{in: in, sink: g.cfg.Sink, status: protocol.StatusRunning, served: g.byName[in.Graph], lostAfter: g.cfg.LostAfter, lateNow: g.cfg.Late,
		checkpoints: checkpointLog{run: info.WorkflowExecution.RunID, lines: in.Lines}}
	if in.Carried == nil {
		in.Life.Refused = nil // of the run before
	}
	e.traced = newTraced(g.cfg.Spans, tracing.RunID{Namespace: info.Namespace, Thread: info.WorkflowExecution.ID, First: info.FirstRunID}, &e.in, e.since(info))
	doubt := suspicionOf(&in, info.WorkflowStartTime)
	t := &tasks{engine: e, doubt: doubt, inputs: &inputs{values: g.cfg.Values}}
	if in.Carried == nil {
		t.late = min(workflow.Now(ctx).Sub(info.WorkflowStartTime), maxLate)
	}
	p := &people{engine: e, counts: counts, inbox: &inbox{}, tasks: t, gate: &gate{engine: e, governs: g.cfg.Governs}, heads: g.cfg.Heads,
		reset: info.OriginalRunID != info.WorkflowExecution.RunID}
	p.life = life.New(info.WorkflowExecution.ID, in.Graph, p, in.Life)
	if in.Carried == nil {
		p.life.State.Taken.Took(protocol.UpdateInvoke, in.ID, nil)
	}
	p.listed = &listed{engine: e, life: p.life, tasks: t}
	r := &run{report: &report{p}, doubt: doubt, room: &room{engine: e}}
	t.outOfTime = func() bool { return r.clock.expired }
	r.segments = &segments{engine: e, life: p.life, tasks: t, inputs: t.inputs, doubt: doubt, counts: counts, again: takenOver(ctx),
		nextTask: g.cfg.NextTask}
	r.updates = &updates{report: r.report, doubt: doubt}
	r.waiters = &waiters{people: p, goesOn: r.mayGoOn}
	var begun beginning
	e.program, begun = g.program(ctx, &e.in)
	e.picture = g.pictures[e.program]
	p.listed.Listing = list(ctx, e)
	return r, begun
}

// answer is start by a request whose answers are noted. Those of an input that the engine refuses count for nothing: the
// questions are open, and may be answered again.
func (r *run) answer(ctx workflow.Context, request string, in pregel.Input, replay bool, by protocol.Asked, failed bool) {
	if r.failure = r.ungated(in.Resume); r.failure != nil {
		r.status, r.drained, r.loop, r.refused = protocol.StatusRunning, "", nil, true
		return
	}
	given := life.AnswersTo(r.program.OpenQuestions(r.thread), in.Resume)
	begins := r.beginning(r.thread, in, replay, failed)
	begins.Budget = r.in.Options.Budget != nil && r.thread.Head != nil
	forget := r.life.Accept(request, given, workflow.Now(ctx))
	r.start(ctx, in, replay)
	if r.loop == nil {
		forget()
		return
	}
	r.auditBegin(ctx, by, begins)
}

// start begins a run of the engine. An input that it refuses leaves the thread as it was, and no loop.
func (r *run) start(ctx workflow.Context, in pregel.Input, replay bool) {
	r.status, r.drained = protocol.StatusRunning, ""
	// A lost segment may have come further than where the run stands: see suspicion.settle.
	r.segments.reset(ctx)
	r.began(ctx, r.durability())
	r.observe = r.observer(ctx)
	r.loop, r.failure = r.program.Start(r.thread, in, r.options(), replay, r.observe)
	r.in.Options.Budget = nil // the thread has it, and answers may give more
	r.refused = r.loop == nil
}

// mayGoOn reports whether there is something to go on with, and nobody holds the run up. One that failed does not go on
// with an answer.
func (r *run) mayGoOn() bool {
	return r.life.State.Paused == nil && r.inbox.invoke != nil || r.life.GoesOn()
}

// answerRunning gives answers that arrived to the tasks that asked, while siblings are still under way: nobody's
// approval waits for somebody else's long task.
func (r *run) answerRunning(ctx workflow.Context) {
	if ctx.Err() != nil || r.loop.Status() != pregel.StatusRunning || len(r.life.Given) == 0 || r.segments.under != nil {
		return
	}
	r.listed.changed = true
	if err := r.loop.Resume(&pregel.Resume{Answers: r.life.GiveAnswers()}); err != nil {
		// Only a scalar can be ambiguous, and what arrives here names its question.
		workflow.GetLogger(ctx).Error("accepted answers could not be given", "error", err)
	}
}
