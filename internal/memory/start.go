package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// StartRun implements runtime.Runtime.
func (m *Runtime) StartRun(ctx context.Context, g *graphadapter.Graph, r runtime.Start) (thread.View, error) {
	if err := runtime.CheckStart(r); err != nil {
		return thread.View{}, err
	}
	t, err := m.thread(g, r.Thread, r.Checkpoint == "" && (r.Input != nil || r.Control != nil))
	if errors.Is(err, thread.ErrNotFound) {
		return thread.View{}, runtime.NotBegun(r)
	}
	if err != nil {
		return thread.View{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	in := runtime.InputOf(r)
	begins := t.beginning(in, r.Checkpoint, r.Reason)
	begins.Budget = r.Budget != nil && t.done != nil
	by, err := t.provenBegin(ctx, begins, runtime.Asker{By: r.By, Token: r.Token})
	if err != nil {
		return t.view, err
	}
	r.Context = protocol.ContextOf(r.Context, t.options.Context, in.Value)
	t.options, t.g = r, g
	return t.begin(ctx, in, r.Checkpoint, life.Begins(by, begins)...)
}

// provenBegin is proven for what the thread goes on with; new input takes no proof.
func (t *threadRun) provenBegin(ctx context.Context, b life.Beginning, a runtime.Asker) (life.Actor, error) {
	may := func() error { return t.mayBegin(b.Input, b.Checkpoint) }
	ops := b.Ops(t.stands.Status.Rests())
	if len(ops) == 0 || t.done == nil && b.From == "" {
		return life.Actor{Claimed: a.By}, may()
	}
	if len(ops) > 1 && t.of.Gate.Governs() {
		return life.Actor{}, t.refuse(thread.ErrBadInput, "a token is for one thing, and this is to "+string(ops[0].Op)+" and to "+
			string(ops[1].Op)+": do one after the other")
	}
	return t.proven(ctx, ops[0], a, may)
}

// mayBegin says why a run with that input cannot begin now; nil when it can, as far as is known before.
func (t *threadRun) mayBegin(in pregel.Input, checkpoint string) error {
	if err := t.busy(); err != nil {
		return err
	}
	if c := t.view.Cancel; c != nil && c.Halted != "" && checkpoint == "" {
		return runtime.Halted(t.graph, t.id, c.Halted)
	}
	return runtime.CheckResume(t.open, t.graph, t.id, in.Resume)
}

// beginning is what the thread goes on with.
func (t *threadRun) beginning(in pregel.Input, checkpoint, reason string) life.Beginning {
	b := life.Beginning{Failed: t.stands.Status.Failed() || t.stands.Status == thread.StatusCancelled, Checkpoint: checkpoint, Input: in, Reason: reason}
	for _, a := range life.AnswersTo(t.open, in.Resume) {
		b.Answered = append(b.Answered, a.QuestionID)
	}
	return b
}

// begin starts a run in the background; t.mu is held. One that is refused leaves the thread as it was; of one that begins
// the entries are noted.
func (t *threadRun) begin(ctx context.Context, in pregel.Input, checkpoint string, entries ...approval.Entry) (thread.View, error) {
	opts := runtime.EngineOptions(t.options, t.Observe)
	opts.Checkpoint, opts.Use, opts.Decoded = checkpoint, t.of.use, &t.decoded
	durability, fused := graphadapter.ModeOf(t.g.Spec, opts.Durability, t.options.Fused)
	opts.Durability = durability
	drain := make(chan string, 1)
	opts.Drain, opts.Emitted = drain, t.tape.emitted
	gate := &graphadapter.Barrier{}
	opts.Gate = gate
	program, err := t.g.Program()
	if err != nil {
		return t.view, err
	}
	rested := t.stands.Rests()
	forget := t.life.Accept("", life.AnswersTo(t.open, in.Resume), time.Now())
	t.tape.begins(rested, program, opts.Durability)
	id := fmt.Sprintf("run-%d", t.runs+1)
	t.effects.invoked(id) // it begins with a checkpoint
	run, err := t.of.driver.Thread(t.g, t.id).Telling(&t.effects).Begin(ctx, in, opts)
	if err != nil {
		forget()
		t.tape.ends()
		t.effects.begins(t.stands.RunID)
		return t.view, runtime.Refusal(t.graph, t.id, err)
	}
	t.options.Budget = nil             // the thread has it, and answers may give more
	if t.life.GiveAnswers(); !rested { // what a run was told that is over is over, too
		t.listen()
		t.life = life.New(t.id, t.graph, t, t.life.Left())
	}
	t.runs++
	number := t.runs
	gate.Held = func(s *pregel.Snapshot) { t.heldUp(number, s) }
	t.stands = thread.View{Thread: t.id, Graph: t.graph, Status: thread.StatusRunning,
		RunID: id, Started: time.Now(), Durability: runtime.ModeShown(durability), Fused: fused, Budget: t.stands.Budget}
	t.cause, t.open, t.drain, t.gate = nil, nil, drain, gate
	t.done = make(chan struct{})
	t.drains()
	t.note(entries...)
	t.shown()
	t.time()
	// The run outlives the call that began it, as on any runtime.
	runCtx, cancel := context.WithCancelCause(t.of.Context(context.WithoutCancel(ctx)))
	t.cancel = cancel
	go func() {
		defer cancel(nil)
		ended, err := run.Drive(runCtx)
		t.stopped(number, ended, err)
	}()
	return t.view, nil
}

// Observe is told what the engine reports.
func (t *threadRun) Observe(e pregel.Event) {
	t.observing.Lock()
	defer t.observing.Unlock()
	t.trace.Observe(e)
	t.effects.Observe(e)
	t.heard.Observe(e)
	t.tape.Observe(e)
}

// WaitRun implements runtime.Runtime.
func (m *Runtime) WaitRun(ctx context.Context, g *graphadapter.Graph, threadID string) (thread.View, error) {
	t, err := m.thread(g, threadID, false)
	if err != nil {
		return thread.View{}, err
	}
	if err := t.settle(ctx); err != nil {
		return thread.View{}, err
	}
	defer t.mu.Unlock()
	if t.view.Status == thread.StatusPaused {
		return t.view, nil // also one that failed before
	}
	return t.view, t.cause
}

// Decoded implements runtime.Runtime.
func (m *Runtime) Decoded(threadID string) *sync.Map {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.threads[threadID]; ok {
		return &t.decoded
	}
	return nil
}

// InvokeRun implements runtime.Runtime.
func (m *Runtime) InvokeRun(ctx context.Context, g *graphadapter.Graph, r runtime.Start) (runtime.Rest, error) {
	if v, err := m.StartRun(ctx, g, r); err != nil {
		return runtime.Resting(v, err)
	}
	return runtime.Resting(m.WaitRun(ctx, g, r.Thread))
}

// stopped records how the run of that number stopped. One that was updated while it was held has been succeeded by that.
func (t *threadRun) stopped(number int, ended graphadapter.RunResult, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs != number {
		return
	}
	defer close(t.done)
	t.tape.ends()
	t.listen()
	runtime.ConcludeView(&t.stands, ended, err)
	t.open = t.trace.Complete(&t.stands, ended.Questions)
	t.effects.ended(t.stands.Status)
	t.cause, t.held = err, false
	t.stands.Held = t.options.Hold && t.stands.Status.Failed()
	if !t.stands.Rests() {
		t.stands.Closed = time.Now()
		t.life.Unpaused()
	}
	if t.stands.Status == thread.StatusCancelled {
		t.cancelled()
	}
	t.life.Look()
	if err := t.advance(); err != nil {
		t.stands.Problem = err.Error()
		t.shown()
	}
}

// advance looks after what the thread asks, and lets its run go on when something came to go on with; t.mu is held.
func (t *threadRun) advance() (err error) {
	if t.life.Undoing() == nil {
		t.act(t.life.Attend(time.Now()))
		if t.life.GoesOn() && (t.stands.Rests() || t.life.State.Retry) {
			_, err = t.begin(context.Background(), t.goesOn(), "")
		}
	}
	t.shown()
	t.time()
	return err
}

// goesOn is what the run goes on with. A run that was ended before it was given its answers asks again what they do not answer.
func (t *threadRun) goesOn() pregel.Input {
	again := t.life.State.Retry
	given := t.life.GiveAnswers()
	if len(given) == 0 && again {
		return pregel.Input{}
	}
	return pregel.Input{Resume: &pregel.Resume{Answers: given, AskAgain: again}}
}

// time sets the timer for what is due first, while the run rests.
func (t *threadRun) time() {
	if t.timer != nil {
		t.timer.Stop()
	}
	if due := t.life.Due(); !due.IsZero() && t.stands.Rests() && t.life.Undoing() == nil {
		t.timer = time.AfterFunc(time.Until(due), t.due)
	}
}

// due attends to what nobody has done in time.
func (t *threadRun) due() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stands.Rests() {
		return // it is attended to when the run rests again
	}
	if err := t.advance(); err != nil {
		t.stands.Problem = err.Error()
		t.shown()
	}
}

// heldUp notes that the run of that number stands at its gate.
func (t *threadRun) heldUp(number int, s *pregel.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs != number || t.life.State.Paused == nil || t.stands.Status != thread.StatusRunning {
		return // it goes on at once
	}
	t.held = true
	t.stands.Step, t.stands.Nodes, t.stands.Output = s.Step+1, s.Next, runtime.Outputs(t.spec.Output, s.Values)
	t.shown()
	close(t.done)
}

// drains tells the engine that it is to stop before its next superstep, when somebody asked for that.
func (t *threadRun) drains() {
	if t.life.Drain == "" {
		return
	}
	select {
	case t.drain <- t.life.Drain:
	default: // it has been told already
	}
	t.life.Drained()
}

// busy says why the thread takes nothing new to do; nil when it does.
func (t *threadRun) busy() error {
	switch {
	case t.life.State.Paused != nil:
		return runtime.RefusedAs(life.Busy, t.graph, t.id, t.life.PausedBy(), nil)
	case t.life.Undoing() != nil:
		return t.refuse(thread.ErrRunning, "its run is being cancelled, and waits for a person to decide about its effects")
	case t.stands.Status == thread.StatusRunning:
		return t.refuse(thread.ErrRunning, "its run is still under way: wait for it or cancel it")
	}
	return nil
}
