package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// people carries what people and time do to a run to the run's life, and what life decides to everybody else.
type people struct {
	*engine
	life    *life.Run
	inbox   *inbox
	tasks   *tasks
	gate    *gate
	listed  *listed
	counts  *counted
	notices notices
	// heads signs the end of the audit for queries; nil for nobody.
	heads approval.HeadSigner

	// alive is the context that the timer ends with, end ends the run's; nil while nobody may end it so.
	alive workflow.Context
	end   func()
	timer deadline
	// taking counts the commands under way. closing says that the run is about to be continued as a new one: no answer is begun.
	taking  int
	closing bool
	// ending says that the run is about to end, and takes nothing any more that makes it go on: also of those who had to wait for a gate.
	ending  bool
	entries []approval.Entry // of this run's audit, the latest of them
	full    bool             // as the memo shows it: see showFull
	reset   bool             // the run was reset: see life.Stand
}

// deadline is the one timer of what the run owes: that of what is due first.
type deadline struct {
	at    time.Time // zero while none runs
	timer workflow.Future
	stop  workflow.CancelFunc
}

// rang reports whether its time has come.
func (d *deadline) rang() bool { return d.timer != nil && d.timer.IsReady() }

// maxEntries bounds what a run keeps of its audit. All of it can be read by replaying the thread's runs.
const maxEntries = 500

// Asks implements [life.Thread].
func (p *people) Asks() []pregel.OpenQuestion { return p.program.OpenQuestions(p.thread) }

// Stand implements [life.Thread].
func (p *people) Stand() life.Stand {
	return life.Stand{
		Status: p.status, Standing: p.standing(), Stopped: p.status == protocol.StatusStopped, Failed: p.failure != nil,
		Held: len(p.tasks.queue) > 0, Invoked: p.inbox.invoke != nil, Edited: len(p.inbox.edits) > 0,
		Reset: p.reset,
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
func (p *people) take(ctx workflow.Context, req request) life.Turn {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if !req.silent {
		p.updates++
	}
	p.taking++
	defer func() { p.taking-- }()
	_ = workflow.Await(ctx, func() bool { return p.free(req) })
	if a, ok := req.Command.(life.Answer); ok {
		p.traced.answers(a)
	}
	take := p.life.Take
	if req.silent {
		take = p.life.TakeSilent
	}
	turn := p.rules(ctx, req, take(req.Command, workflow.Now(ctx)))
	if turn.Err != nil && req.silent {
		workflow.GetLogger(ctx).Warn("a message was refused", "reason", turn.Err.Error())
	}
	turn.Err = refused(turn.Err)
	return turn
}

// rules asks a gate what it says of a command, for as long as it has to, and does what was decided.
func (p *people) rules(ctx workflow.Context, req request, turn life.Turn) life.Turn {
	for turn.Asks() {
		p.act(ctx, turn.Actions)
		word := p.ask(ctx, req, turn)
		_ = workflow.Await(ctx, func() bool { return p.settled(req) })
		turn = p.life.Ruled(turn, word, workflow.Now(ctx))
	}
	p.act(ctx, turn.Actions)
	p.time(ctx)
	p.showFull(ctx)
	return turn
}

// free reports whether a command can be looked at. What came by signal is verified later; an answer by update is not begun any
// more by a run that is about to be continued as a new one.
func (p *people) free(req request) bool {
	if req.silent {
		return p.settled(req)
	}
	_, answers := req.Command.(life.Answer)
	return p.life.Free(req.Command) && !(answers && p.closing)
}

// settled reports whether what a command is about is known: not while the thread is being changed.
func (p *people) settled(req request) bool {
	if req.now {
		return true
	}
	switch req.Command.(type) {
	case nil, life.Answer, life.Event:
		return !p.inbox.changing()
	}
	return true
}

// ask asks a gate. What has no token was let through by its validator, or is held to rules here.
func (p *people) ask(ctx workflow.Context, req request, turn life.Turn) (word life.Word) {
	switch proof := turn.Control; {
	case proof == nil:
		word.Replies, word.Err = p.gate.askGate(ctx, turn.Verify.Request)
		if word.Err != nil {
			workflow.GetLogger(ctx).Error("answers to approvals could not be verified", "error", word.Err)
		}
	case proof.Token != "":
		word.Control = p.gate.askControl(ctx, *proof)
	case (req.silent || req.unseen) && p.gate.governedNow(ctx):
		word.Control = life.Unsigned(proof.Op)
	default:
		word.Control = approval.Ruling{Allowed: true}
	}
	return word
}

// act does what life has decided.
func (p *people) act(ctx workflow.Context, actions []life.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case life.Noted:
			p.noted(ctx, a.Entry)
		case life.Shown:
			// The memo, unlike a search attribute, has room for who and why, and lists show it.
			if err := workflow.UpsertMemo(ctx, map[string]any{protocol.MemoPause: a.Paused}); err != nil {
				workflow.GetLogger(ctx).Warn("the pause is not in the memo", "error", err)
			}
		case life.Ending:
			if p.end != nil {
				p.end()
			}
		case life.Tell:
			p.notices.tell(a, func(ctx workflow.Context) { p.act(ctx, p.life.ToldNotice(a.Number)) })
		case life.Hush:
			p.notices.hush(a.Number)
		}
	}
}

// noted passes on an entry of the audit.
func (p *people) noted(ctx workflow.Context, e approval.Entry) {
	if p.entries = append(p.entries, e); len(p.entries) > maxEntries {
		p.entries = append(p.entries[:0:0], p.entries[len(p.entries)-maxEntries:]...)
	}
	p.counts.noted(e)
	p.traced.noted(ctx, e)
	if sink, ok := p.sink.(graphadapter.Auditor); ok {
		sink.Audited(e)
	}
	if e.ParamsHash != "" && e.Kind != approval.KindUsed && e.Kind != approval.KindNotUsed { // it is about an approval that waits
		p.listed.news++
	}
}

// note adds entries of what the run itself has done.
func (p *people) note(ctx workflow.Context, entries ...approval.Entry) {
	p.life.Note(workflow.Now(ctx), entries...)
	p.act(ctx, p.life.Actions())
}

// attend looks after what the run asks, and what nobody has done in time.
func (p *people) attend(ctx workflow.Context) {
	p.act(ctx, p.life.Attend(workflow.Now(ctx)))
	p.time(ctx)
	p.showFull(ctx)
	p.takeEarly(ctx)
}

// takeEarly takes the answers that came before their questions.
func (p *people) takeEarly(ctx workflow.Context) {
	early := p.life.TakeEarly()
	if len(early) == 0 {
		return
	}
	p.taking++ // a run does not end in between
	workflow.Go(ctx, func(ctx workflow.Context) {
		defer func() { p.taking-- }()
		for _, a := range early {
			p.take(ctx, request{Command: a, silent: true})
		}
	})
}

// showFull shows in the memo whether the run keeps as many events as it may: while no worker is there, senders look at that before
// they store one more.
func (p *people) showFull(ctx workflow.Context) {
	full := p.life.Full()
	if full == p.full {
		return
	}
	p.full = full
	if err := workflow.UpsertMemo(ctx, map[string]any{protocol.MemoFull: full}); err != nil {
		workflow.GetLogger(ctx).Warn("that the run keeps no more events is not in the memo", "error", err)
	}
}

// time keeps the timer at what is due first.
func (p *people) time(ctx workflow.Context) {
	t, first := &p.timer, p.life.Due()
	if first.Equal(t.at) || p.inbox.changing() {
		return
	}
	if t.stop != nil {
		t.stop()
	}
	*t = deadline{at: first}
	if first.IsZero() || p.alive.Err() != nil {
		return
	}
	var timing workflow.Context
	timing, t.stop = workflow.WithCancel(p.alive)
	timer := workflow.NewTimerWithOptions(timing, max(0, first.Sub(workflow.Now(ctx))), workflow.TimerOptions{Summary: "due"})
	workflow.Go(p.alive, func(ctx workflow.Context) {
		if timer.Get(ctx, nil) != nil || !t.at.Equal(first) {
			return
		}
		*t = deadline{}
		_ = workflow.Await(ctx, func() bool { return !p.inbox.changing() }) // what is asked is not known before
		if ctx.Err() == nil {
			p.attend(ctx)
		}
	})
}

// verifies reports whether answers to approvals that came by signal are to be verified. A run that was cancelled withdraws what it asks.
func (p *people) verifies(ctx workflow.Context) bool {
	return p.life.Verifies() && !p.closing && ctx.Err() == nil
}

// verifyReplies verifies those answers, all that wait in one activity as far as they fit.
func (p *people) verifyReplies(ctx workflow.Context) {
	for p.verifies(ctx) {
		wait, _ := workflow.NewDisconnectedContext(ctx)
		if turn := p.rules(wait, request{silent: true}, p.life.Batch(workflow.Now(ctx))); turn.Err != nil {
			_ = workflow.Sleep(ctx, verifyPause)
		}
		GiveWay(ctx) // to updates, and to the run's being continued as a new one
	}
}

// verifyPause is between two tries to verify answers by signal.
const verifyPause = 5 * time.Second

// waiting reports whether there is something for the engine to go on with.
func (p *people) waiting() bool { return p.inbox.invoke != nil || p.life.Waiting() }

// takeInput empties what arrived into an engine input. A bare resume only passes a breakpoint.
func (p *people) takeInput() pregel.Input {
	in := pregel.Input{}
	if p.inbox.invoke != nil {
		in = pregel.Input(p.inbox.invoke.Input)
		p.inbox.invoke = nil
	}
	if all := p.life.GiveAnswers(); len(all) > 0 {
		if in.Resume == nil {
			in.Resume = &pregel.Resume{}
		}
		in.Resume.Answers = append(in.Resume.Answers, all...)
	}
	return in
}

// auditBegin notes what it is a recovery of that the thread goes on: nothing for a run that just begins.
func (p *people) auditBegin(ctx workflow.Context, a protocol.Asked, b life.Beginning) {
	b.From, b.Reason = a.From, a.Reason
	p.note(ctx, life.Begins(a.Actor(), b)...)
}

// auditReply answers a query, so the signature is in no history: a worker signs what it has come to itself.
func (p *people) auditReply() (protocol.AuditReply, error) {
	reply := protocol.AuditReply{Entries: p.entries, Chain: p.life.Chain}
	if p.heads != nil {
		signed, err := p.heads.SignHead(approval.Head{Thread: p.life.ThreadID(), Chain: reply.Chain})
		if reply.Signed = signed; err != nil {
			reply.Problem = err.Error()
		}
	}
	return reply, nil
}

// resting is the status of a run that has no task under way.
func (p *people) resting() string {
	switch {
	case p.life.State.Paused != nil:
		return protocol.StatusPaused
	case p.failure != nil:
		return protocol.FailureStatus(failureOf(p.in.Graph, p.failure))
	case p.threadStatus() == pregel.StatusWaiting && len(p.life.Questions()) == 0 && len(p.life.Waits()) > 0:
		return protocol.StatusWaitingEvent
	case p.threadStatus() == pregel.StatusWaiting:
		return protocol.StatusWaiting
	case p.nothingLeft():
		return protocol.StatusFinished
	}
	return protocol.StatusStopped
}

// standing reports whether the run stands still, so that its state may be changed.
func (p *people) standing() bool {
	return p.status != protocol.StatusRunning && p.life.Undoing() == nil && !p.ending
}

// over refuses what makes a run go on that is about to end.
func (p *people) over() error {
	if p.ending {
		return protocol.Refuse(protocol.ErrTypeBusy, "the run is about to end: continue the thread when it has")
	}
	return nil
}

// inbox notes what arrived for the main coroutine and is no part of the run's life.
type inbox struct {
	invoke *protocol.InvokeRequest
	edits  []*edit
	// unread are answers by signal that were received, and wait for the thread to be looked at.
	unread []protocol.ResumeRequest
	read   int // signals, so far
}

// changing reports whether the thread is about to change, so that its open questions may not be open any more.
func (b *inbox) changing() bool { return b.invoke != nil || len(b.edits) > 0 }

// edit is an accepted update of the state until its outcome is known.
type edit struct {
	req   protocol.UpdateStateRequest
	done  bool
	reply protocol.UpdateStateReply
	err   error
}
