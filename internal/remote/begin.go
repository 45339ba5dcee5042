package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/internal/tracing"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// begin continues the thread's last run, or starts its first one.
func (c *Threads) begin(ctx context.Context, g *graphadapter.Graph, req runtime.Start, last *lastRun) (thread.View, error) {
	switch {
	case last == nil && req.Checkpoint != "":
		return thread.View{}, runtime.NoCheckpoint(req.Graph, req.Thread, req.Checkpoint)
	case last == nil && req.Input == nil && req.Control == nil:
		return thread.View{}, runtime.NotBegun(req)
	case last == nil:
		return c.launch(ctx, req, inputFor(req), nil)
	case last.open:
		return c.beginOpen(ctx, g, req, last)
	}
	req, in, err := c.behind(ctx, g, req, last)
	if err != nil {
		return thread.View{}, err
	}
	switch taken, err := c.wasTaken(ctx, req.ID, last, in); {
	case err != nil:
		return thread.View{}, err
	case taken:
		return goingOn(c.viewOf(last)), nil
	}
	return c.launch(ctx, req, in, last)
}

// wasTaken reports whether a thread's last run, which is over, or one before had the request of that id: in is the input of the run
// that is to follow. Such a request is a repetition, of a caller who did not learn what became of it. A thread's first run that could not
// begin has noted nothing, and its start tells.
func (c *Threads) wasTaken(ctx context.Context, id string, last *lastRun, in protocol.GraphInput) (bool, error) {
	_, taken := in.Life.Taken.Find(protocol.UpdateInvoke, id)
	if taken || id == "" || c.callOf(last.described) == id {
		return id != "", nil
	}
	if in.State != nil {
		return false, nil
	}
	first, err := startedWith(ctx, c.server, last.described.GetWorkflowExecutionInfo().GetExecution())
	if err != nil {
		return false, c.explain(err, last.graph, last.thread)
	}
	return first.ID == id, nil
}

// behind is the input of the run that follows a thread's last one, which is over, and the request for it.
func (c *Threads) behind(ctx context.Context, g *graphadapter.Graph, req runtime.Start, last *lastRun) (_ runtime.Start, in protocol.GraphInput, err error) {
	if err := ofGraph(req, last); err != nil {
		return req, in, err
	}
	g = c.graphOr(g, last)
	in = inputFor(req)
	in.Replay = req.Checkpoint != ""
	before, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return req, in, err
	}
	if before != nil {
		in.Context = protocol.ContextOf(in.Context, before.Context, in.Input.Value)
	}
	if req.Checkpoint != "" {
		at, err := c.stateAt(ctx, g, last, req.Checkpoint, pregel.UseFor(runtime.InputOf(req)))
		if err != nil {
			return req, in, err
		}
		refusable := req.Resume != nil || req.Control != nil // by the run itself
		if refusable || !at.branches && !req.Branch {
			in.Newest = in.State
		}
		in.State = at.state
	}
	if err := c.misfit(last, protocol.InvokeRequest{Input: in.Input, State: in.State}.Misfit(c.maxState())); err != nil {
		return req, in, err
	}
	if err := tryInput(g, last, in); err != nil {
		return req, in, err
	}
	if req.Governed {
		if err := c.mayBegin(ctx, last, in, req); err != nil {
			return req, in, err
		}
	}
	if last.status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		req = req.StaysOpen()
	}
	return req, in, nil
}

// lastBefore is the thread's last run. Of a thread that must be new nobody is asked: the server refuses to start one that is
// there.
func (c *Threads) lastBefore(ctx context.Context, req runtime.Start) (*lastRun, error) {
	if req.NewThread {
		return nil, nil
	}
	return c.lastRun(ctx, req.Thread)
}

// mayBegin refuses what the rules for control do, before a run begins that would.
func (c *Threads) mayBegin(ctx context.Context, last *lastRun, in protocol.GraphInput, req runtime.Start) error {
	b := life.Beginning{Failed: in.Failed, Checkpoint: req.Checkpoint, Input: pregel.Input(in.Input), Budget: req.Budget != nil}
	if in.Input.Resume != nil {
		b.Answered = []string{""}
	}
	for _, op := range b.Ops(false) {
		_, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph, Control: controlCheck(last, op, runtime.Asker{By: req.By, Token: req.Token})})
		if err != nil {
			return err
		}
	}
	return nil
}

// tryInput refuses answers and commands that the engine would refuse at once: a run of its own that fails would be the
// thread's last.
func tryInput(g *graphadapter.Graph, last *lastRun, in protocol.GraphInput) error {
	if in.Input.Resume == nil && in.Input.Control == nil || in.State == nil {
		return nil
	}
	program, th, err := runtime.ReadThread(in.Spec, in.State, runtime.ReducersOf(g))
	if err != nil {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: last.thread, Message: "the thread's state cannot be read", Cause: err}
	}
	if err := runtime.CheckResume(program.OpenQuestions(th), last.graph, last.thread, in.Input.Resume); err != nil {
		return err
	}
	if g == nil && len(runtime.Unreadable(in.Spec)) > 0 {
		return nil // the run itself will see
	}
	_, err = program.Start(th, pregel.Input(in.Input), pregel.Options{RecursionLimit: graphadapter.DefaultRecursionLimit}, in.Replay, nil)
	return runtime.Refusal(last.graph, last.thread, err)
}

// beginOpen gives a run that stands still something new to do; one that is under way refuses.
func (c *Threads) beginOpen(ctx context.Context, g *graphadapter.Graph, req runtime.Start, last *lastRun) (thread.View, error) {
	if err := ofGraph(req, last); err != nil {
		return thread.View{}, err
	}
	if err := c.somebodyPolls(ctx, last.graph, last.queue); err != nil {
		return thread.View{}, err
	}
	g = c.graphOr(g, last)
	invoke := protocol.InvokeRequest{ID: cmp.Or(req.ID, uuid.NewString()), Input: protocol.Input(runtime.InputOf(req)), Settings: runtime.SettingsOf(req),
		Asked: runtime.AskedOf(req.By, req.Reason, req.Token), Trace: tracing.Carried(ctx)}
	w := c.waiterFor(last.thread)
	w.input = invoke.Input.Value
	invoke.RestRequest = w.request(req.Rest)
	if req.Checkpoint != "" {
		at, err := c.stateAt(ctx, g, last, req.Checkpoint, pregel.UseFor(runtime.InputOf(req)))
		if err != nil {
			return thread.View{}, err
		}
		invoke.State = at.state
	}
	if err := c.misfit(last, invoke.Misfit(c.maxState())); err != nil {
		return thread.View{}, err
	}
	var reply protocol.RestReply
	run, err := c.updateRun(ctx, ctx, last, invoke.ID, protocol.UpdateInvoke, invoke, &reply)
	if err != nil {
		return thread.View{}, err
	}
	if !req.Rest {
		return goingOn(c.viewOf(last)), nil
	}
	rest, err := w.shown(ctx, run, reply)
	return rest.Whole(), err
}

// ofGraph refuses a request for another graph than the thread's.
func ofGraph(req runtime.Start, last *lastRun) error {
	if last.graph == req.Graph || last.graph == "" { // "" is of a run that named none
		return nil
	}
	return &thread.Error{Kind: thread.ErrBadInput, Graph: req.Graph, Thread: req.Thread,
		Message: fmt.Sprintf("thread %q belongs to graph %q, not to %q", req.Thread, last.graph, req.Graph)}
}

// goingOn is the view of an open run that was given something to do: what it does is told behind the events that it had.
func goingOn(v thread.View) thread.View {
	v.Status = thread.StatusRunning
	return v
}

// ForkRun implements runtime.Runtime.
func (c *Threads) ForkRun(ctx context.Context, g *graphadapter.Graph, r thread.ForkRequest) (thread.View, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return thread.View{}, err
	}
	g = c.graphOr(g, last)
	if err := runtime.CheckFork(last.graph, r); err != nil {
		return thread.View{}, err
	}
	if r.As == "" {
		return c.StartRun(ctx, g, runtime.Start{Branch: true, StartRequest: thread.StartRequest{Graph: last.graph, Thread: r.Thread, Checkpoint: r.Checkpoint,
			By: r.By, Reason: r.Reason, Token: r.Token}})
	}
	req := runtime.Start{StartRequest: thread.StartRequest{Graph: last.graph, Thread: r.As, By: r.By, Reason: r.Reason}}
	if err := runtime.CheckStart(req); err != nil {
		return thread.View{}, err
	}
	if _, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph, Control: controlCheck(&lastRun{thread: r.As, graph: last.graph},
		approval.Control{Op: approval.OpFork, On: r.Checkpoint}, runtime.Asker{By: r.By, Token: r.Token})}); err != nil {
		var refused *thread.Error
		if errors.As(err, &refused) && refused.Thread == r.As {
			refused.Command = []string{"show", r.Thread} // the other one is not there to be looked at
		}
		return thread.View{}, err
	}
	of, earlier, err := c.pastWith(ctx, g, last, r.Checkpoint)
	if err != nil {
		return thread.View{}, err
	}
	in, err := branch(of, earlier, last, r)
	if err != nil {
		return thread.View{}, c.explain(err, last.graph, r.Thread)
	}
	in.Asked = protocol.Asked{By: r.By, Reason: r.Reason, From: r.Thread, Token: r.Token}
	v, err := c.launch(ctx, req, in, nil)
	if errors.Is(err, thread.ErrRunning) {
		err = runtime.ExistsAlready(last.graph, r.As)
	}
	if err == nil && r.Copy {
		return c.Wait(ctx, r.As)
	}
	return v, err
}

// branch is the input of a new thread's first run, which begins with a checkpoint of another thread.
func branch(of *past.Past, earlier []protocol.Line, last *lastRun, r thread.ForkRequest) (in protocol.GraphInput, err error) {
	checkpoint := cmp.Or(r.Checkpoint, of.Newest())
	th, ok := of.Leave(checkpoint, r.Copy, r.Thread)
	if !ok {
		return in, runtime.NoCheckpoint(last.graph, r.Thread, checkpoint)
	}
	program, _ := of.Thread()
	state, err := program.EncodeThread(th)
	if err != nil {
		return in, &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: r.Thread, Message: "the checkpoint cannot be stored", Cause: err}
	}
	lines, err := linesUntil(of, earlier, checkpoint)
	if err != nil {
		return in, err
	}
	return protocol.GraphInput{Graph: last.graph, Spec: program.Spec, State: state, Replay: !r.Copy, Copy: r.Copy, Lines: lines,
		Origin: &protocol.Origin{Thread: last.thread, Run: last.runID, Checkpoint: checkpoint}}, nil
}
