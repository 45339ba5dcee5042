package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// run is one execution of the Graph workflow.
type run struct {
	in      GraphInput
	sink    graphadapter.Recorder // nil in workers
	program *pregel.Program
	thread  *pregel.Thread
	loop    *pregel.Loop
	status  string
	failure error
	// suspectStep is the superstep whose tasks may have acted in an earlier run; -1 for none.
	suspectStep int

	tasks   window
	results []result
	inbox   inbox
	lines   lines
}

// Graph runs a thread of a graph: superstep by superstep, a node's task as an activity, an interrupt as a question that
// waits for its answer without a process. It ends when nothing is left to run. When a node fails for good it ends as
// failed, with everything that a retry needs in its last event.
func (g *Graphs) Graph(ctx workflow.Context, in GraphInput) (*GraphResult, error) {
	r := &run{in: in, sink: g.sink, status: StatusRunning}
	r.inbox.answered = in.Answered
	r.lines.kept = in.Lines
	r.program = g.program(ctx, &r.in)
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.handle(ctx); err != nil {
		return nil, err
	}
	r.start(ctx, in.Input)
	r.suspectStep = -1
	if in.Suspect && r.loop != nil {
		r.suspectStep = r.loop.Step()
	}
	for {
		r.runTasks(ctx)
		r.ended(ctx)
		if ctx.Err() != nil {
			return nil, r.cancelled(ctx)
		}
		switch {
		case r.failure != nil:
			return nil, r.failed(ctx)
		case r.loop.Status() == pregel.StatusDone:
			return r.finished(ctx)
		}
		r.wait(ctx)
		if ctx.Err() != nil {
			return nil, r.cancelled(ctx)
		}
		r.start(ctx, r.inbox.take())
	}
}

// open reads the state that the run continues.
func (r *run) open() error {
	r.thread = pregel.NewThread()
	if r.in.State == nil {
		return nil
	}
	thread, err := r.program.DecodeThread(r.in.State)
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), ErrTypeRunFailed, err)
	}
	r.thread = thread
	return nil
}

// start begins a run of the engine. An input that it refuses ends the workflow, with the thread as it was.
func (r *run) start(ctx workflow.Context, in pregel.Input) {
	options := r.in.Options
	if options.RecursionLimit == 0 {
		options.RecursionLimit = graphadapter.DefaultRecursionLimit
	}
	r.began(ctx)
	r.loop, r.failure = r.program.Start(r.thread, in, options, false, r.observer(ctx))
	r.status = StatusRunning
}

// runTasks runs the engine's tasks until it has none left: the run has finished, failed, or waits for people. Once the
// run is cancelled it starts no more, and waits for those that run: their writes are kept.
func (r *run) runTasks(ctx workflow.Context) {
	if r.failure != nil {
		return
	}
	// A disconnected context: the wait for running tasks outlasts the cancellation that ends them.
	wait, _ := workflow.NewDisconnectedContext(ctx)
	for {
		r.answerRunning(ctx)
		r.tasks.add(r.loop.Ready())
		full := historyFull(ctx)
		if ctx.Err() == nil && full == nil {
			r.schedule(ctx)
		}
		if r.tasks.running == 0 && len(r.results) == 0 {
			if len(r.tasks.queue) > 0 && full != nil {
				r.failure = full
				return
			}
			break
		}
		_ = workflow.Await(wait, func() bool { return len(r.results) > 0 || r.inbox.hasAnswers() && ctx.Err() == nil })
		r.deliver()
	}
	r.failure = r.loop.Err()
}

// answerRunning gives answers that arrived to the tasks that asked, while siblings are still under way: nobody's
// approval waits for somebody else's long task.
func (r *run) answerRunning(ctx workflow.Context) {
	if ctx.Err() != nil || r.loop.Status() != pregel.StatusRunning || !r.inbox.hasAnswers() {
		return
	}
	if err := r.loop.Resume(r.inbox.take().Resume); err != nil {
		// Only a scalar can be ambiguous, and what arrives here names its question.
		workflow.GetLogger(ctx).Error("accepted answers could not be given", "error", err)
	}
}

// wait holds the run until an answer arrives or the run is cancelled. No worker is occupied while it waits.
func (r *run) wait(ctx workflow.Context) {
	r.status = StatusWaiting
	if r.loop.Status() == pregel.StatusBreakpoint {
		r.status = StatusStopped
	}
	r.show(ctx)
	_ = workflow.Await(ctx, func() bool { return r.inbox.waiting() || ctx.Err() != nil })
	r.status = StatusRunning
	if ctx.Err() == nil {
		r.show(ctx)
	}
}

// errorType names an engine error for programs.
func errorType(err error) string {
	var node *pregel.NodeError
	if errors.As(err, &node) {
		return ErrTypeNodeFailed
	}
	return ErrTypeRunFailed
}
