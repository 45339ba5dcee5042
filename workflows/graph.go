package workflows

import (
	"cmp"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/approval"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/figures"
	"superstep.dev/internal/stackroom"
	"superstep.dev/thread/secret"
	"superstep.dev/workflows/protocol"
)

// Graph runs a thread of a graph: superstep by superstep, a node's task as an activity, an interrupt as a question that
// waits for its answer without a process. It ends when nothing is left to run. When a node fails for good it ends as
// failed, with everything that a retry needs in its last event; a run that is to be held then waits for that retry.
// handedOn is the state of a run that this one continues, nil for any other: see [protocol.Carried].
func (g *Graphs) Graph(ctx workflow.Context, in protocol.GraphInput, handedOn []byte) (*protocol.GraphResult, error) {
	stackroom.Grow()
	counts := g.counts(ctx, in.Graph)
	if in.Carried == nil {
		counts.Add(figures.RunsBegun, 1)
	}
	result, err := g.run(ctx, in, handedOn, counts)
	counts.ended(ctx, err)
	counts.traced.ended(ctx, err)
	return result, err
}

func (g *Graphs) run(ctx workflow.Context, in protocol.GraphInput, handedOn pregel.Value, counts *counted) (*protocol.GraphResult, error) {
	problem := in.Problem()
	if problem != "" && in.State == nil {
		return nil, badInput(ctx, &in, problem)
	}
	r, begun := g.newRun(ctx, in, counts)
	counts.traced = r.traced
	if err := r.open(ctx, handedOn); err != nil {
		return nil, err
	}
	ctx, cancel := workflow.WithCancel(ctx)
	r.alive, r.end = ctx, cancel
	if err := r.handle(ctx); err != nil {
		return nil, err
	}
	r.openNotices(ctx)
	switch {
	case in.Carried != nil:
	case in.Cancel != nil:
		return nil, r.cancelledBefore(ctx)
	default:
		if problem = r.misfit(cmp.Or(problem, begun.Problem)); problem != "" && in.State == nil {
			return nil, r.notBegun(ctx, problem)
		}
		r.begin(ctx, problem)
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

// open reads the state that the run goes on from; handedOn is that of a run which it continues.
func (r *run) open(ctx workflow.Context, handedOn pregel.Value) (err error) {
	r.thread = pregel.NewThread()
	if r.in.State != nil {
		r.thread, err = r.program.DecodeThread(r.in.State)
	}
	if err == nil && r.in.Newest != nil {
		r.newest, err = r.program.DecodeThread(r.in.Newest)
	}
	switch {
	case err == nil && r.in.Carried != nil:
		err = r.carryOn(ctx, r.in.Carried, handedOn)
	case err == nil:
		r.thread.Begin(cmp.Or(r.in.ThreadOrigin, workflow.GetInfo(ctx).FirstRunID)) // a reset keeps it
		r.life.Reopen(r.program.OpenQuestions(r.thread))
	}
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), protocol.ErrTypeRunFailed, err)
	}
	return nil
}

// misfit says what is wrong with what the run was started with, problem if that is known, and "" for nothing.
func (r *run) misfit(problem string) string {
	if name := r.in.Settings().UnknownNode(r.in.Spec); problem == "" && name != "" {
		return fmt.Sprintf("the breakpoint at %q: there is no such node, there are %s", name, protocol.NodeNames(r.in.Spec))
	}
	return problem
}

// notBegun ends a thread's first run, which cannot begin, and tells those who wait for it.
func (r *run) notBegun(ctx workflow.Context, problem string) error {
	r.failure, r.refused = protocol.Refuse(protocol.ErrTypeBadInput, "%s", problem), true
	r.listed.showEnd(ctx, protocol.StatusFailed)
	r.replied(ctx)
	return badInput(ctx, &r.in, problem)
}

// begin does what the run was started for: a run of the engine, or updates of the state.
func (r *run) begin(ctx workflow.Context, problem string) {
	if problem != "" {
		r.failure, r.refused = protocol.Refuse(protocol.ErrTypeBadInput, "%s", problem), true
		return
	}
	if r.failure = r.provenBegin(ctx); r.failure != nil {
		r.refused = true
		return
	}
	if len(r.in.Edits) > 0 {
		_, r.failure = r.updates.update(ctx, protocol.UpdateStateRequest{Edits: r.in.Edits, Within: r.in.Within, Asked: r.in.Asked})
		r.refused = r.failure != nil
		return
	}
	if r.in.Copy {
		r.updates.stand(ctx)
		return
	}
	r.answer(ctx, "", pregel.Input(r.in.Input), r.in.Replay, r.in.Asked, r.in.Failed)
	if r.in.Suspect {
		r.doubtSuperstep()
	}
}

// provenBegin refuses to begin what the rules do not allow who asks for it: the thread stays as it was. A run that just
// begins, with new input or none, takes no proof, and has no event for this.
func (r *run) provenBegin(ctx workflow.Context) error {
	asked := r.in.Asked
	if err := boundedAsked(asked); err != nil {
		return err
	}
	control, err := oneControl(r.beginOps(), asked.Token)
	r.in.Asked = asked.ProvenBy(life.Actor{})
	if err != nil || control.Op == "" {
		return err
	}
	return r.take(ctx, request{unseen: true, Command: life.Act{Name: string(control.Op), By: asked.By, Token: asked.Token, What: control,
		Do: func(by life.Actor) any { r.in.Asked = asked.ProvenBy(by); return nil }}}).Err
}

// beginOps is what the run's beginning does to its thread.
func (r *run) beginOps() []approval.Control {
	switch {
	case len(r.in.Edits) > 0:
		return []approval.Control{{Op: approval.OpUpdate}}
	case r.in.Copy:
		return []approval.Control{{Op: approval.OpFork, On: headID(r.thread)}}
	}
	b := r.beginning(r.thread, pregel.Input(r.in.Input), r.in.Replay, r.in.Failed)
	b.Budget = r.in.Options.Budget != nil && r.thread.Head != nil
	return b.Ops(false)
}

// Desk is a workflow that ends at once and lives on for its query: a closed workflow can be asked as long as it is
// retained, which costs no event, and any worker of its task queue answers for itself.
func (g *Graphs) Desk(ctx workflow.Context) error {
	return workflow.SetQueryHandlerWithOptions(secret.Asked(ctx), protocol.QueryAdmit, g.admit,
		workflow.QueryHandlerOptions{Description: "Whether this worker serves a graph and takes an input or updates."})
}

func (g *Graphs) admit(req protocol.AdmitRequest) (protocol.AdmitReply, error) {
	reply := protocol.AdmitReply{Serves: g.names(), Notices: g.cfg.Notices}
	for _, l := range g.cfg.Leaders {
		reply.Leaders = append(reply.Leaders, l.Name)
		if l.Name == req.Leader {
			reply.Known, reply.Experts = true, l.Experts
		}
	}
	if slices.Sort(reply.Leaders); req.Leader != "" {
		return reply, nil
	}
	graph, ok := g.byName[req.Graph]
	reply.Known = ok
	if !ok {
		return reply, nil
	}
	reply.Governs = g.cfg.Governs != nil && g.cfg.Governs()
	if req.Control != nil && reply.Governs && g.cfg.May != nil {
		ruling := g.cfg.May(*req.Control)
		reply.Ruling = &ruling
	}
	if req.WithSpec {
		reply.Spec = graph.Spec
	}
	if req.WithSchemas {
		all := graph.AllSchemas()
		reply.Schemas = &all
	}
	if req.Input != nil && graph.CheckInput != nil {
		if err := graph.CheckInput(req.Input); err != nil {
			reply.Problem = err.Error()
		}
	}
	if err := graph.CheckUpdates(req.Within, req.Edits); err != nil {
		reply.Problem = err.Error()
	}
	return reply, nil
}
