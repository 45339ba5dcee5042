package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// lifeHost is what carries the decisions of the run's life: its one timer, and what has to wait for a gate.
type lifeHost struct {
	// alive is the context that the timer ends with, end ends the run's; nil while nobody may end it so.
	alive workflow.Context
	end   func()
	timer deadline
	// taking counts the commands under way. closing says that the run is about to be continued as a new one: no answer is begun.
	taking  int
	closing bool
	// news counts the entries about approvals: what lists show of one changes with them.
	news    int
	entries []approval.Entry // of this run's audit, the latest of them
}

// deadline is the one timer of what the run owes: that of what is due first.
type deadline struct {
	at   time.Time // zero while none runs
	stop workflow.CancelFunc
}

// maxEntries bounds what a run keeps of its audit. All of it can be read by replaying the thread's runs.
const maxEntries = 500

// Asks implements [life.Thread].
func (r *run) Asks() []pregel.OpenQuestion { return r.program.OpenQuestions(r.thread) }

// Stand implements [life.Thread].
func (r *run) Stand() life.Stand {
	return life.Stand{
		Status: r.status, Standing: r.standing(), Stopped: r.status == protocol.StatusStopped, Failed: r.failure != nil,
		Held: len(r.tasks.queue) > 0, Invoked: r.inbox.invoke != nil, Edited: len(r.inbox.edits) > 0,
	}
}

// request is a command, and how it came.
type request struct {
	life.Command
	// silent says that its sender gets no reply, unseen that no validator has looked whether it has to be proven.
	silent, unseen bool
	// now says that nobody can wait until the thread is not being changed any more.
	now bool
}

// take has life take a command in, once nothing is in the way, and asks a gate where that is needed: also when the run is being
// cancelled, since who asked is told.
func (r *run) take(ctx workflow.Context, req request) life.Turn {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	r.host.taking++
	defer func() { r.host.taking-- }()
	_ = workflow.Await(ctx, func() bool { return r.free(req) })
	take := r.life.Take
	if req.silent {
		take = r.life.TakeSilent
	}
	turn := r.rules(ctx, req, take(req.Command, workflow.Now(ctx)))
	if turn.Err != nil && req.silent {
		workflow.GetLogger(ctx).Warn("a message was refused", "reason", turn.Err.Error())
	}
	turn.Err = refused(turn.Err)
	return turn
}

// rules asks a gate what it says of a command, for as long as it has to, and does what was decided.
func (r *run) rules(ctx workflow.Context, req request, turn life.Turn) life.Turn {
	for turn.Asks() {
		r.act(ctx, turn.Actions)
		word := r.ask(ctx, req, turn)
		_ = workflow.Await(ctx, func() bool { return r.settled(req) })
		turn = r.life.Ruled(turn, word, workflow.Now(ctx))
	}
	r.act(ctx, turn.Actions)
	r.time(ctx)
	return turn
}

// free reports whether a command can be looked at. What came by signal is verified later; an answer by update is not begun any
// more by a run that is about to be continued as a new one.
func (r *run) free(req request) bool {
	if req.silent {
		return r.settled(req)
	}
	_, answers := req.Command.(life.Answer)
	return r.life.Free(req.Command) && !(answers && r.host.closing)
}

// settled reports whether what a command is about is known: not while the thread is being changed.
func (r *run) settled(req request) bool {
	if req.now {
		return true
	}
	switch req.Command.(type) {
	case nil, life.Answer, life.Event:
		return !r.inbox.changing()
	}
	return true
}

// ask asks a gate. What has no token was let through by its validator, or is held to rules here.
func (r *run) ask(ctx workflow.Context, req request, turn life.Turn) (word life.Word) {
	switch p := turn.Control; {
	case p == nil:
		word.Replies, word.Err = r.askGate(ctx, turn.Verify.Request)
		if word.Err != nil {
			workflow.GetLogger(ctx).Error("answers to approvals could not be verified", "error", word.Err)
		}
	case p.Token != "":
		word.Control = r.askControl(ctx, *p)
	case (req.silent || req.unseen) && r.governedNow(ctx):
		word.Control = life.Unsigned(p.Op)
	default:
		word.Control = approval.Ruling{Allowed: true}
	}
	return word
}

// refused is the error with which a sender is told why life refuses a command; nil, and another error, stays what it is.
func refused(err error) error {
	var why *life.Refusal
	switch {
	case !errors.As(err, &why):
		return err
	case why.Ruling != nil:
		return temporal.NewNonRetryableApplicationError(why.Message, string(why.Kind), nil, *why.Ruling)
	}
	return temporal.NewNonRetryableApplicationError(why.Message, string(why.Kind), nil)
}

// act does what life has decided.
func (r *run) act(ctx workflow.Context, actions []life.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case life.Noted:
			r.noted(ctx, a.Entry)
		case life.Shown:
			// The memo, unlike a search attribute, has room for who and why, and lists show it.
			if err := workflow.UpsertMemo(ctx, map[string]any{protocol.MemoPause: a.Paused}); err != nil {
				workflow.GetLogger(ctx).Warn("the pause is not in the memo", "error", err)
			}
		case life.Ending:
			if r.host.end != nil {
				r.host.end()
			}
		case life.Tell:
			r.notices.tell(a, r)
		case life.Hush:
			r.notices.hush(a.Number)
		}
	}
}

// noted passes on an entry of the audit.
func (r *run) noted(ctx workflow.Context, e approval.Entry) {
	h := &r.host
	if h.entries = append(h.entries, e); len(h.entries) > maxEntries {
		h.entries = append(h.entries[:0:0], h.entries[len(h.entries)-maxEntries:]...)
	}
	if sink, ok := r.sink.(graphadapter.Auditor); ok {
		sink.Audited(e)
	}
	if e.ParamsHash != "" && e.Kind != approval.KindUsed && e.Kind != approval.KindNotUsed { // it is about an approval that waits
		h.news++
	}
}

// note adds entries of what the run itself has done.
func (r *run) note(ctx workflow.Context, entries ...approval.Entry) {
	r.life.Note(workflow.Now(ctx), entries...)
	r.act(ctx, r.life.Actions())
}

// attend looks after what the run asks, and what nobody has done in time.
func (r *run) attend(ctx workflow.Context) {
	r.act(ctx, r.life.Attend(workflow.Now(ctx)))
	r.time(ctx)
}

// time keeps the timer at what is due first.
func (r *run) time(ctx workflow.Context) {
	t, first := &r.host.timer, r.life.Due()
	if first.Equal(t.at) || r.inbox.changing() {
		return
	}
	if t.stop != nil {
		t.stop()
	}
	*t = deadline{at: first}
	if first.IsZero() || r.host.alive.Err() != nil {
		return
	}
	var timing workflow.Context
	timing, t.stop = workflow.WithCancel(r.host.alive)
	timer := workflow.NewTimerWithOptions(timing, max(0, first.Sub(workflow.Now(ctx))), workflow.TimerOptions{Summary: "due"})
	workflow.Go(r.host.alive, func(ctx workflow.Context) {
		if timer.Get(ctx, nil) != nil || !t.at.Equal(first) {
			return
		}
		*t = deadline{}
		_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() }) // what is asked is not known before
		if ctx.Err() == nil {
			r.attend(ctx)
		}
	})
}

// verifyReplies verifies the answers to approvals that came by signal, all that wait in one activity as far as they fit.
func (r *run) verifyReplies(ctx workflow.Context) {
	for {
		_ = workflow.Await(ctx, func() bool { return r.life.Verifies() && !r.host.closing })
		if ctx.Err() != nil {
			return // the run withdraws what it asks
		}
		wait, _ := workflow.NewDisconnectedContext(ctx)
		if turn := r.rules(wait, request{silent: true}, r.life.Batch(workflow.Now(ctx))); turn.Err != nil {
			_ = workflow.Sleep(ctx, verifyPause)
		}
		GiveWay(ctx) // to updates, and to the run's being continued as a new one
	}
}

// verifyPause is between two tries to verify answers by signal.
const verifyPause = 5 * time.Second

// waiting reports whether there is something for the engine to go on with.
func (r *run) waiting() bool { return r.inbox.invoke != nil || r.life.Waiting() }

// takeInput empties what arrived into an engine input. A bare resume only passes a breakpoint.
func (r *run) takeInput() pregel.Input {
	in := pregel.Input{}
	if r.inbox.invoke != nil {
		in = pregel.Input(r.inbox.invoke.Input)
		r.inbox.invoke = nil
	}
	if all := r.life.GiveAnswers(); len(all) > 0 {
		if in.Resume == nil {
			in.Resume = &pregel.Resume{}
		}
		in.Resume.Answers = append(in.Resume.Answers, all...)
	}
	return in
}

// auditBegin notes what it is a recovery of that the thread goes on: nothing for a run that just begins.
func (r *run) auditBegin(ctx workflow.Context, a *protocol.Asked, b life.Beginning) {
	if a != nil {
		b.From, b.Reason = a.From, a.Reason
	}
	r.note(ctx, life.Begins(actorOf(a), b)...)
}

// auditReply answers a query, so the signature is in no history: a worker signs what it has come to itself.
func (r *run) auditReply() (protocol.AuditReply, error) {
	reply := protocol.AuditReply{Entries: r.host.entries, Chain: r.life.Chain}
	if r.heads != nil {
		signed, err := r.heads.SignHead(approval.Head{Thread: r.life.ThreadID(), Chain: reply.Chain})
		if reply.Signed = signed; err != nil {
			reply.Problem = err.Error()
		}
	}
	return reply, nil
}
