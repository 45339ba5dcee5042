package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Runtime keeps and runs threads, in this process or on Temporal.
//
// A method returns an error of this package ([Error] with one of the sentinels) when the call was refused. A view of a
// run that failed comes with the failure's cause as the error, as far as it is known.
type Runtime interface {
	// startRun begins a run and returns when it is accepted. Without input it goes on where the thread stands.
	StartRun(ctx context.Context, g *graphadapter.Graph, r Start) (thread.View, error)
	// waitRun returns when the thread's run waits for answers, stopped at a breakpoint, or ended.
	WaitRun(ctx context.Context, g *graphadapter.Graph, thread string) (thread.View, error)
	// invokeRun is both, in as few calls as the runtime can.
	InvokeRun(ctx context.Context, g *graphadapter.Graph, r Start) (Rest, error)
	// decoded is where callers keep what they have decoded of the thread's output, a jsonfit.Kept by what it is of; nil for nowhere.
	Decoded(thread string) *sync.Map
	// showRun returns what is known of the thread, also while its run goes on.
	ShowRun(ctx context.Context, g *graphadapter.Graph, thread string) (thread.View, error)
	// resumeRun answers questions, all or none of them, and returns when the answers are accepted.
	ResumeRun(ctx context.Context, g *graphadapter.Graph, r thread.ResumeRequest) (thread.ResumeReply, error)
	// answerRun is both resumeRun and waitRun, in as few calls as the runtime can.
	AnswerRun(ctx context.Context, g *graphadapter.Graph, r thread.ResumeRequest) (Rest, error)
	// stateOf returns a thread's state, now or at a checkpoint.
	StateOf(ctx context.Context, g *graphadapter.Graph, r thread.StateRequest) (thread.StateView, error)
	// historyOf returns checkpoints, newest first.
	HistoryOf(ctx context.Context, g *graphadapter.Graph, r thread.HistoryRequest) ([]thread.CheckpointView, error)
	// updateState writes to the state from outside, all of the updates or none, and returns it as it is then.
	UpdateState(ctx context.Context, g *graphadapter.Graph, r thread.UpdateRequest) (thread.StateView, error)
	// forkRun begins a run from an earlier checkpoint and returns when it is accepted.
	ForkRun(ctx context.Context, g *graphadapter.Graph, r thread.ForkRequest) (thread.View, error)
	// drainRun asks the open run to stop before its next superstep and returns when that is accepted.
	DrainRun(ctx context.Context, g *graphadapter.Graph, r thread.DrainRequest) (thread.View, error)
	// pauseRun pauses the open run, or lets it go on, and returns when that is accepted or stored.
	PauseRun(ctx context.Context, g *graphadapter.Graph, r thread.PauseRequest, unpause bool) (thread.PauseReply, error)
	// eventRun sends an event and returns when it is taken or stored.
	EventRun(ctx context.Context, g *graphadapter.Graph, r thread.EventRequest) (thread.EventReply, error)
	// retryRun goes on after a failure and returns when that is accepted.
	RetryRun(ctx context.Context, g *graphadapter.Graph, r thread.RetryRequest) (thread.View, error)
	// cancelRun ends the open run and returns when it has ended, or waits for people to decide what it leaves.
	CancelRun(ctx context.Context, g *graphadapter.Graph, r thread.CancelRequest) (thread.View, error)
	// effectsOf returns what a thread did outside.
	EffectsOf(ctx context.Context, g *graphadapter.Graph, thread string) (thread.EffectsView, error)
	// originOf returns who made a checkpoint, and which effects were begun on the way to it.
	OriginOf(ctx context.Context, g *graphadapter.Graph, thread, checkpoint string) (past.Origin, error)
	// auditOf returns a thread's record, and the chain that it ends in.
	AuditOf(ctx context.Context, g *graphadapter.Graph, thread string) ([]approval.Entry, approval.Chain, error)
	// exportOf returns the same with the end of the chain as a worker signs it.
	ExportOf(ctx context.Context, g *graphadapter.Graph, thread string) (approval.Export, error)
	// streamRun returns what the thread's runs stream.
	StreamRun(ctx context.Context, g *graphadapter.Graph, r thread.StreamRequest) iter.Seq2[thread.Part, error]
}

// Start is a request for a run, with what was found out about it on the way.
type Start struct {
	thread.StartRequest
	// branch makes the run from Checkpoint begin with a checkpoint of its own in any case.
	Branch bool
	// notices makes the run tell people outside of its questions.
	Notices bool
	// governed says that what is done to runs is under rules.
	Governed bool
	// rest says that the caller waits for the run to rest: the view is then of the run that rests, where that costs no more.
	Rest bool
	// Checked says that the graph's input check has taken the input.
	Checked bool
}

// TurnsIdle is how long a run that its thread was invoked for again is kept open for further turns, unless its caller says otherwise.
const TurnsIdle = time.Hour

// StaysOpen is the request for the next run of a thread that has finished and is invoked again: it stays open for further turns.
func (r Start) StaysOpen() Start {
	if r.Rest && r.Input != nil && !r.KeepOpen && r.IdleTimeout == 0 {
		r.KeepOpen, r.IdleTimeout = true, TurnsIdle
	}
	return r
}

// InputOf is what a request gives to the engine.
func InputOf(req Start) pregel.Input {
	return pregel.Input{Value: req.Input, Resume: req.Resume, Control: req.Control}
}

// Restore makes a request one with the settings of an earlier run.
func (r *Start) Restore(s *protocol.Settings) {
	if s == nil {
		return
	}
	r.RecursionLimit, r.InterruptBefore, r.InterruptAfter = s.Options.RecursionLimit, s.Options.InterruptBefore, s.Options.InterruptAfter
	r.Durability, r.Fused, r.MaxConcurrency = s.Durability, s.Fused, s.MaxConcurrency
	r.KeepOpen, r.IdleTimeout = s.KeepOpen != 0, time.Duration(max(s.KeepOpen, 0))*time.Millisecond
	r.Hold, r.Requester = s.Hold, s.Requester
	r.StepTimeout, r.Context = time.Duration(s.StepTimeout)*time.Millisecond, json.RawMessage(s.Context)
}

// SettingsOf are the settings of a run that a request asks for.
func SettingsOf(req Start) *protocol.Settings {
	keepOpen := int64(0)
	if req.KeepOpen {
		keepOpen = cmp.Or(req.IdleTimeout.Milliseconds(), -1)
	}
	return &protocol.Settings{
		Options: pregel.Options{RecursionLimit: req.RecursionLimit, Budget: budgetOf(req),
			InterruptBefore: req.InterruptBefore, InterruptAfter: req.InterruptAfter, Branch: req.Branch},
		Durability: req.Durability, Fused: req.Fused, MaxConcurrency: req.MaxConcurrency,
		StepTimeout: req.StepTimeout.Milliseconds(), Context: pregel.Value(req.Context), KeepOpen: keepOpen, Hold: req.Hold, Requester: req.Requester,
		Notices: req.Notices,
	}
}

// budgetOf is the budget that a request gives its thread, nil for none.
func budgetOf(r Start) *pregel.Amounts {
	if r.Budget == nil {
		return nil
	}
	amounts := r.Budget.Amounts()
	return &amounts
}

// EngineOptions are a request's options as the driver takes them.
func EngineOptions(r Start, observer pregel.Observer) graphadapter.RunOptions {
	return graphadapter.RunOptions{
		Options: pregel.Options{RecursionLimit: r.RecursionLimit, Budget: budgetOf(r),
			InterruptBefore: r.InterruptBefore, InterruptAfter: r.InterruptAfter, Branch: r.Branch},
		Durability:     r.Durability,
		Checkpoint:     r.Checkpoint,
		MaxConcurrency: r.MaxConcurrency,
		StepTimeout:    r.StepTimeout,
		Context:        pregel.Value(r.Context),
		Requester:      r.Requester,
		Observer:       observer,
	}
}

// Asker is who asks for something: By says so, and Token proves it where rules want that.
type Asker struct{ By, Reason, Token string }

// AskedOf is who asks for something on the wire.
func AskedOf(by, reason, token string) protocol.Asked {
	return protocol.Asked{By: by, Reason: reason, Token: token}
}
