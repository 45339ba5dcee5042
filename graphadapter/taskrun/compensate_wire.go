package taskrun

import (
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
