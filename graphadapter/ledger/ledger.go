// Package ledger holds the pure states of what a task does to the outside: memoised calls and effects.
//
// An [Entry] is one call. Its methods are the only ways from one state to the next; [Decide] is the reconciliation
// table: what to do next, given what the ledger says and what the outside says. The package does no I/O and reads no
// clock.
package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Kind tells a memoised call from a write to the outside.
type Kind string

const (
	// KindTask is a call whose result is remembered.
	KindTask Kind = "task"
	// KindEffect is a write to the outside.
	KindEffect Kind = "effect"
	// KindUndo is the call that undoes a write to the outside.
	KindUndo Kind = "undo"
)

// State is how far an entry got.
type State string

const (
	// StateIntent: the call may have been made; no receipt yet.
	StateIntent State = "intent"
	// StateCommitted: the outside has it; Result is the receipt. It is final.
	StateCommitted State = "committed"
	// StateFailed: the outside refused it for good; nothing was written there.
	StateFailed State = "failed"
	// StateNotKept: a memoised call was made, and its result is too large to remember: the call is made again each time.
	StateNotKept State = "not_kept"
	// StateUnknown: no program can tell whether the outside has it, so a person is asked. Result is the receipt that
	// was found and did not fit, if there was one.
	StateUnknown State = "unknown"
)

// Entry is one memoised call or effect of one task. The key is a hash of thread, branch, namespace, superstep, task
// path, name, and ordinal or given key; never of an attempt or a run id. A thread-wide key leaves out where the task is.
type Entry struct {
	Key        string `json:"key"`
	Name       string `json:"name"`
	Kind       Kind   `json:"kind"`
	State      State  `json:"state"`
	ParamsHash string `json:"params_hash,omitempty"`
	// ThreadWide says that the key is the thread's: the hash of thread, name and given key alone.
	ThreadWide bool `json:"thread_wide,omitempty"`
	// Within says that a graph which the task's code called made the call: its effects are not those of the task's graph.
	Within bool `json:"within,omitempty"`
	// Params are an effect's parameters, exactly as they were given: reconciliation needs them after the node is gone.
	Params json.RawMessage `json:"params,omitempty"`
	// Result is a memoised call's result or an effect's receipt.
	Result json.RawMessage `json:"result,omitempty"`
	// Left is the size in bytes of a result or receipt that is too large to be kept here, 0 when there is none.
	Left int `json:"left_out_bytes,omitempty"`
	// Settle is how long after a call began it may show in the outside at the latest, in milliseconds; 0 means
	// that the call said nothing.
	Settle int64 `json:"settle_ms,omitempty"`
	// Attempts counts the calls to the outside that were started.
	Attempts int `json:"attempts"`
	// Returned counts those of them that are known to have come back, or that a person has answered for: the others may
	// still be under way in a worker that was lost. It is kept for effects with LossAsk only.
	Returned int `json:"returned,omitempty"`
	// Rulings counts the answers of a person that were used up. The next question about this entry is a new one, so
	// that an old "repeat" never allows a second repetition.
	Rulings int `json:"rulings,omitempty"`
	// Evidence says in words how a state other than by our own call came about: "lookup after crash".
	Evidence string `json:"evidence,omitempty"`
	// Reported says of a compensated entry that its task has ended, with the error that the write is undone: whoever runs
	// the task again wants another write.
	Reported bool `json:"reported,omitempty"`
	// Approved says which decision the call is made by; nil for one that needed none.
	Approved *Approved `json:"approved,omitempty"`
}

// Approved is the decision by which a call is made.
type Approved struct {
	Question string `json:"question"`
	// Digest is that of the action which was approved; see approval.Action.Digest.
	Digest string `json:"digest"`
	// Proposed is the hash of the parameters that the node gave: those approved are the entry's, and may be others.
	Proposed string `json:"proposed,omitempty"`
	// By names who decided, the last of several. Token is the id of the token that proved it, and KeyID that of the key.
	By    string `json:"by,omitempty"`
	Token string `json:"token,omitempty"`
	KeyID string `json:"key_id,omitempty"`
	// Code is why it was not acted upon, "" when it was.
	Code string `json:"code,omitempty"`
}

// Outside reports whether the entry is of a call that changes the outside: an effect, or what undoes one.
func (e Entry) Outside() bool { return e.Kind == KindEffect || e.Kind == KindUndo }

// Slim is the entry without what can be had again: the node gives the parameters when it calls, the outside the receipt.
func (e Entry) Slim() Entry {
	e.Params = nil
	return e.WithoutResult()
}

// WithoutResult is the entry when its result is too large to keep. A committed effect stays so: its receipt is looked up when
// it is needed. A memoised call has to be made again.
func (e Entry) WithoutResult() Entry {
	if e.Result == nil {
		return e
	}
	e.Left, e.Result = len(e.Result), nil
	if e.Kind != KindEffect {
		e.State = StateNotKept
	}
	return e
}

// Send returns the entry as it must be stored before a call to the outside: an intent with one more attempt.
func (e Entry) Send() (Entry, error) {
	sent, err := e.become(StateIntent, nil, "")
	if err == nil {
		sent.Attempts++
	}
	return sent, err
}

// Commit returns the entry with the receipt or result. evidence is "" after our own call, else how we know.
func (e Entry) Commit(result json.RawMessage, evidence string) (Entry, error) {
	return e.become(StateCommitted, result, evidence)
}

// Refuse returns the entry of a call that the outside refused for good and did not write.
func (e Entry) Refuse(evidence string) (Entry, error) { return e.become(StateFailed, nil, evidence) }

// Doubt returns the entry that waits for a person, with the reason and the receipt that was found, if any.
func (e Entry) Doubt(reason string, found json.RawMessage) (Entry, error) {
	return e.become(StateUnknown, found, reason)
}

// become holds all of these to the one rule that they share: what the outside has stays so.
func (e Entry) become(to State, result json.RawMessage, evidence string) (Entry, error) {
	if e.State == StateCommitted || e.State == StateCompensated {
		return e, &TransitionError{Name: e.Name, Key: e.Key, From: e.State, To: to}
	}
	e.State, e.Result, e.Left, e.Evidence = to, result, 0, evidence
	return e, nil
}

// Return returns the entry of a call that has come back, with whatever error.
func (e Entry) Return() Entry {
	e.Returned++
	return e
}

// AnsweredFor returns the entry whose calls so far a person has answered for, by saying that another may be made.
func (e Entry) AnsweredFor() Entry {
	e.Returned = e.Attempts
	return e
}

// Ruled returns the entry with one answer of a person used up.
func (e Entry) Ruled() Entry {
	e.Rulings++
	return e
}

// SameParams returns a [ConflictError] when the node gave parameters of another hash when the entry was made.
func (e Entry) SameParams(hash string) error {
	given := e.ParamsHash
	if e.Approved != nil {
		given = cmp.Or(e.Approved.Proposed, given)
	}
	if given != "" && given != hash {
		return &ConflictError{Name: e.Name, Key: e.Key, Recorded: given, Got: hash}
	}
	return nil
}

// ConflictError says that a key was used again with other parameters. The call was not made: the key was recorded for
// something else, so the node is not deterministic up to this call, or two writes share one business key.
type ConflictError struct {
	Name, Key     string
	Recorded, Got string
	// Graph, Node and Thread say where the key was used again.
	Graph, Node, Thread string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("effect %q (key %s) of node %q, graph %q, thread %q, was recorded with other parameters (hash "+
		"%.12s, now %.12s): compute the parameters from state, or from a memoised Task, and keep the order of calls or "+
		"give each its own key", e.Name, e.Key, e.Node, e.Graph, e.Thread, e.Recorded, e.Got)
}

// TransitionError says that an entry cannot go from one state to the other. It is a mistake in the calling code.
type TransitionError struct {
	Name, Key string
	From, To  State
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("ledger entry %q (key %s) is %s and cannot become %s", e.Name, e.Key, e.From, e.To)
}

// Hash returns the SHA-256 of the parts in hex. Each part goes with its length, so that no two lists of parts are
// the same bytes.
func Hash(parts ...string) string {
	h := sha256.New()
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// KeyLength is 128 bits in hex: short enough for people and for the key fields of other systems.
const KeyLength = 32

// UndoKey is the key of an effect's compensation.
func UndoKey(effect string) string { return Hash("compensate", effect)[:KeyLength] }

// KindApproval is the ledger entry of a question about an action: its Params are the action as it was asked about, its
// state is committed once the approval was acted upon, and failed when that was refused.
const KindApproval Kind = "approval"

// UndosBegun are the keys of the effects among entries that a call was made to undo.
func UndosBegun(entries []Entry) map[string]bool {
	begun, tried := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		if e.Kind == KindUndo && e.Attempts > 0 {
			begun[e.Key] = true
		}
	}
	for _, e := range entries {
		if e.Kind == KindEffect && begun[UndoKey(e.Key)] {
			tried[e.Key] = true
		}
	}
	return tried
}
