package taskrun

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/jsontext"
)

// Compensate undoes one effect of a thread of g, the root graph, by the effect's Compensate, and returns what became of
// it. What was called is in the journal before it is called: another execution with that journal looks up before it calls
// again. A call that fails is repeated as the target's guarantee allows, five times.
//
// It is an effect of its own: Compensate is given a key that follows from the effect's, the same in every execution. The
// context that it gets is no node's; [TaskRun.Info] and [TaskRun.RunContext] work in it.
//
// The error is [ErrFenced], or the cause of ctx.
func Compensate(ctx context.Context, g *graphadapter.Graph, c Compensation, env CompensateEnv) (Undone, error) {
	u := newUndo(c, env)
	graph, effect, ok := effectOf(g, c)
	switch {
	case !ok:
		return u.open("the graph that this worker has does not declare the effect any more"), nil
	case c.Effect.Params == nil:
		return Undecided(g, c, u.open("its parameters are not on record")), nil
	}
	u.effect = effect
	undone, err := u.run(inUndo(ctx, g, graph, c, env))
	undone.Calls = u.own.Attempts
	if undone.State == UndoOpen {
		undone = Undecided(g, c, undone)
	}
	return undone, err
}

// Undecided is u, which is open, with the parameters that the person who decides about c is shown. They are masked here,
// where the effect's declaration is: the run that asks has only what the activity returns.
func Undecided(g *graphadapter.Graph, c Compensation, u Undone) Undone {
	if _, effect, ok := effectOf(g, c); ok {
		u.Params = shown(effect.Masked(c.Effect.Params))
	}
	return u
}

func newUndo(c Compensation, env CompensateEnv) undo {
	u := undo{of: c, env: env, own: ledger.Entry{Key: ledger.UndoKey(c.Effect.Key), Name: c.Effect.Name, Kind: ledger.KindUndo}}
	if own, known := env.Journal.Entry(u.own.Key); known {
		u.own, u.recorded = own, true
	}
	return u
}

// inUndo returns the context of a compensation: that of a task that has ended, so nothing more can be called in it.
func inUndo(ctx context.Context, root, graph *graphadapter.Graph, c Compensation, env CompensateEnv) context.Context {
	t := &TaskRun{counts: map[string]int{}, attempt: &attempt{
		root: root, graph: graph, task: &pregel.Task{Node: c.Node}, env: &Env{Thread: env.Thread, Context: env.Context},
		journal: env.Journal, closed: true, locks: map[string]chan struct{}{},
		info: Info{Graph: graph.Spec.Name, Node: c.Node, Thread: env.Thread, Step: c.Step, Attempt: 1, Suspect: env.Suspect},
	}}
	return t.in(ctx)
}

// run makes sure that the outside has the write, then undoes it.
func (u *undo) run(ctx context.Context) (Undone, error) {
	if e := u.of.Effect; e.State != ledger.StateCommitted || e.Result == nil && u.effect.Compensate != nil {
		if undone, err := u.stands(ctx); err != nil || undone.State != "" {
			return undone, err
		}
	}
	if u.effect.Compensate == nil {
		return u.open("the effect has no Compensate"), nil
	}
	return u.takeBack(ctx)
}

// takeBack undoes a write that the outside has.
func (u *undo) takeBack(ctx context.Context) (Undone, error) {
	u.finding = ledger.FindingNone
	for {
		if u.partly && u.finding == ledger.FindingPartial {
			u.finding = ledger.FindingCommitted
		}
		var own *ledger.Entry
		if u.recorded {
			own = &u.own
		}
		switch ledger.DecideUndo(u.effect.Guarantee(), own, u.before(), u.finding) {
		case ledger.ActionUse:
			return Undone{State: UndoDone}, nil
		case ledger.ActionAccept:
			return Undone{State: UndoDone, Evidence: "lookup: the outside has it no more"}, nil
		case ledger.ActionLookUp:
			if err := u.lookUp(ctx); err != nil {
				return Undone{}, err
			}
		case ledger.ActionWaitSettle:
			if err := u.lookUpSettled(ctx); err != nil {
				return Undone{}, err
			}
		case ledger.ActionCall:
			if done, err := u.call(ctx); err != nil || done.State != "" {
				return done, err
			}
		default:
			return u.open(u.doubt()), nil
		}
	}
}

// stands looks up an effect of which it is not known that the outside has it. A zero Undone means that it has.
func (u *undo) stands(ctx context.Context) (Undone, error) {
	for {
		switch ledger.DecideStanding(u.effect.Guarantee(), &u.of.Effect, u.finding) {
		case ledger.ActionLookUp:
			if err := u.lookUp(ctx); err != nil {
				return Undone{}, err
			}
		case ledger.ActionWaitSettle:
			if err := u.lookUpSettled(ctx); err != nil {
				return Undone{}, err
			}
		case ledger.ActionAccept:
			u.of.Effect.Result = u.found
			return Undone{}, nil
		case ledger.ActionUse:
			return Undone{State: UndoAbsent, Evidence: "lookup: the outside never had it"}, nil
		default:
			return u.open(u.doubt()), nil
		}
	}
}

func (u *undo) doubt() string {
	switch {
	case u.failure != nil && u.note == "":
		return fmt.Sprintf("the call to undo it failed: %v", u.failure)
	case u.note == "":
		return fmt.Sprintf("the outside says %q, and the target (%s) does not make repeating safe", u.finding, u.effect.Target)
	case u.failure != nil:
		return fmt.Sprintf("%s; the call to undo it failed: %v", u.note, u.failure)
	}
	return u.note
}

// call records the intent and makes the call. A zero Undone means that the call failed and is to be looked up.
func (u *undo) call(ctx context.Context) (Undone, error) {
	if u.failure != nil && (graphadapter.IsPermanent(u.failure) || u.own.Attempts >= maxUndoCalls) {
		return u.open(fmt.Sprintf("the call to undo it failed %d times: %v", u.own.Attempts, u.failure)), nil
	}
	if u.failure != nil && !pause(ctx, u.pauseAfter(u.own.Attempts)) {
		return Undone{}, context.Cause(ctx)
	}
	entry, err := u.own.Send()
	if err != nil {
		return Undone{}, err
	}
	if err := u.env.Journal.Record(ctx, entry); err != nil {
		return Undone{}, err // nothing was called
	}
	u.own, u.recorded = entry, true
	if ctx.Err() != nil {
		return Undone{}, context.Cause(ctx)
	}
	if u.failure = u.take(ctx); u.failure == nil {
		return Undone{State: UndoDone, Receipt: u.found}, nil
	}
	if ctx.Err() != nil {
		return Undone{}, context.Cause(ctx)
	}
	return Undone{}, u.lookUp(ctx)
}

// take calls the effect's Compensate. One that ignores the end of its time is left behind: it may still go through,
// which is why it is looked up.
func (u *undo) take(ctx context.Context) error {
	back := make(chan struct{})
	_, err := inTime(ctx, graphadapter.DefaultCallTimeout, u.env.Lease, func(ctx context.Context) (struct{}, error) {
		defer close(back)
		return struct{}{}, u.effect.Compensate(ctx, u.own.Key, u.of.Effect.Params, u.of.Effect.Result)
	})
	select {
	case <-back:
		u.returned(ctx, err)
	default: // it was left behind
	}
	return err
}

// returned is effectCall.returned.
func (u *undo) returned(ctx context.Context, err error) {
	if err == nil || u.effect.OnLoss != ledger.LossAsk {
		return
	}
	if own := u.own.Return(); u.env.Journal.Record(ctx, own) == nil {
		u.own = own
	}
}

// effectOf finds the declaration of an effect: in the graph whose node called it, or else in one that a node called.
func effectOf(g *graphadapter.Graph, c Compensation) (*graphadapter.Graph, graphadapter.Effect, bool) {
	graph := g
	for _, name := range c.Graph {
		if sub, ok := graph.Subgraphs[name]; ok {
			graph = sub
		}
	}
	e, ok := graph.Effects[c.Effect.Name]
	return graph, e, ok
}

// The activities with which a run that is cancelled undoes its effects. Their names have no dot, so no node's is the
// same.
const (
	// StandingActivity finds the effects that are to be undone: a StandingRequest gives a StandingReply.
	StandingActivity = "superstep-standing"
	// CompensateActivity undoes one effect: a CompensateRequest gives an Undone.
	CompensateActivity = "superstep-compensate"
	// RewindActivity finds out where the thread goes on then: a RewindRequest gives a RewindReply.
	RewindActivity = "superstep-rewind"
)

// StandingRequest asks for the effects of a thread that are made, or may be, since it last finished.
type StandingRequest struct {
	Graph  string `json:"graph"`
	Thread string `json:"thread"`
	// Skip leaves out that many of the newest, which an earlier page gave.
	Skip int `json:"skip,omitempty"`
	// Rollback leaves out what was made before an invocation that is taken back; "" leaves out none.
	Rollback past.Rollback `json:"rollback,omitempty"`
}

// StandingReply is a page of them, the newest receipt first.
type StandingReply struct {
	Effects []Compensation `json:"effects"`
	// More says that this is not all.
	More bool `json:"more,omitempty"`
	// Gone counts earlier runs that the server has no more: what they did is not known.
	Gone int `json:"gone,omitempty"`
}

// The bounds of a page.
const (
	maxStanding      = 50
	maxStandingBytes = 256 << 10
)

// Page cuts all that is standing to the page that the request asks for. One effect fits in any case.
func (r *StandingRequest) Page(standing []past.EffectRecord) StandingReply {
	reply := StandingReply{Effects: []Compensation{}}
	size := 0
	for _, e := range standing[min(r.Skip, len(standing)):] {
		size += len(e.Params) + len(e.Result)
		if n := len(reply.Effects); n == maxStanding || n > 0 && size > maxStandingBytes {
			reply.More = true
			break
		}
		reply.Effects = append(reply.Effects, Compensation{Graph: e.Graph, Node: e.Node, Step: e.Step, Place: e.Place, Effect: e.Entry, Tried: e.Tried})
	}
	return reply
}

// CompensateRequest is the input of CompensateActivity.
type CompensateRequest struct {
	Graph  string `json:"graph"`
	Thread string `json:"thread"`
	// Context is the run's context value; nil for none.
	Context pregel.Value `json:"context,omitempty"`
	// OriginalRunID is as in NodeRequest.
	OriginalRunID string `json:"original_run_id"`
	// Suspect says that an earlier run may have begun to undo the effect without a trace.
	Suspect      bool         `json:"suspect,omitempty"`
	Compensation Compensation `json:"compensation"`
	// Trace is the run's place in a trace, "" for none.
	Trace string `json:"trace,omitempty"`
}

// UndoRuling is what a person answers about an effect that could not be undone.
type UndoRuling string

const (
	// UndoRuledDone: it is undone in the outside.
	UndoRuledDone UndoRuling = "done"
	// UndoRuledRepeat: try to undo it again.
	UndoRuledRepeat UndoRuling = "repeat"
	// UndoRuledLeave: leave it as it is.
	UndoRuledLeave UndoRuling = "leave"
)

// undoSchema is the JSON schema of the answer.
var undoSchema = pregel.Value(`{"type":"string","enum":["repeat","done","leave"],"description":"repeat: try to undo it again; ` +
	`done: it is undone in the outside; leave: it stays as it is"}`)

// maxAsked bounds a value that is shown to a person in a question, in bytes.
const maxAsked = 16 << 10

// undoPrefix begins the keys of questions about effects that could not be undone.
const undoPrefix = "compensate/"

// IsUndo reports whether a question is about an effect that could not be undone, and none that a node asks.
func IsUndo(q pregel.Question) bool { return strings.HasPrefix(q.Key, undoPrefix) }

// UndoQuestion asks a person what to do about an effect that could not be undone. rulings counts the answers about it so
// far: each question is a new one. The parameters are those of u; without them a person sees that they are hidden.
func UndoQuestion(thread string, c Compensation, u Undone, rulings int) pregel.OpenQuestion {
	params := u.Params
	if params == nil {
		params = graphadapter.HiddenParams
	}
	value, err := jsontext.Encode(Reconcile{
		Kind:   "compensate",
		Ask:    fmt.Sprintf("%s could not be undone: %s", c.Effect.Name, u.Reason),
		Effect: c.Effect.Name, Key: c.Effect.Key, Reason: u.Reason,
		Params: params, Receipt: shown(c.Effect.Result), Calls: u.Calls,
	})
	if err != nil {
		value = pregel.Null // what came out of JSON goes into it
	}
	key := fmt.Sprintf("%s%s/%d", undoPrefix, c.Effect.Key, rulings)
	return pregel.OpenQuestion{Node: c.Node, Step: c.Step, Question: pregel.Question{
		ID: "q-" + ledger.Hash(thread, "question", key)[:8], Key: key, Value: value, Schema: undoSchema}}
}

func shown(v pregel.Value) pregel.Value {
	if len(v) == 0 || len(v) > maxAsked {
		return pregel.Null
	}
	return v
}

// ReadUndoRuling reads an answer that has the question's schema; any other leaves the effect as it is.
func ReadUndoRuling(answer pregel.Value) UndoRuling {
	var r UndoRuling
	if json.Unmarshal(answer, &r) != nil {
		return UndoRuledLeave
	}
	return r
}

// UndoEvent tells a [Recorder] what became of the compensation of an effect, after that many calls. It names no task.
func UndoEvent(c Compensation, state ledger.State, evidence string, calls int) pregel.Event {
	stored, _ := graphadapter.EncodeLedger([]ledger.Entry{{Key: c.Effect.Key, Name: c.Effect.Name, Kind: ledger.KindEffect,
		State: state, Evidence: evidence, Attempts: calls}}) // nothing in it that JSON does not have
	return pregel.Event{Kind: pregel.EventLedger, Value: stored}
}

// KeepUndone tells a thread what became of an effect under a thread-wide key that was to be undone: its tasks are given
// what it keeps, and must not take an undone write for a made one, nor make one a second time that stands. No task may own
// the key.
func KeepUndone(t *pregel.Thread, c Compensation, state ledger.State, evidence string) error {
	if !c.Effect.ThreadWide {
		return nil
	}
	if _, keeps := t.Kept(c.Effect.Key); keeps && state == c.Effect.State {
		return nil
	}
	e := c.Effect.Slim()
	e.State, e.Evidence = state, clip.Text(evidence, maxKeptEntry/4)
	e.Reported = state == ledger.StateCompensated
	v, err := jsontext.Encode(e)
	if err != nil {
		return err
	}
	return t.Keep(e.Key, v)
}
