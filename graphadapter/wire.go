package graphadapter

import (
	"encoding/json"
	"errors"
	"maps"
	"time"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// NodeRequest is the input of a node's activity.
type NodeRequest struct {
	// Graph names the root graph whose node runs; Task.Graph leads from there to the subgraph.
	Graph      string      `json:"graph"`
	Thread     string      `json:"thread"`
	Task       pregel.Task `json:"task"`
	Durability Durability  `json:"durability,omitempty"`
	// OriginalRunID is the workflow's first run id before any reset: when the activity's own differs, the run was
	// reset, and earlier executions of this task may be missing from its record.
	OriginalRunID string `json:"original_run_id"`
	// Context is the run's context value; nil for none.
	Context pregel.Value `json:"context,omitempty"`
	// Requester is on whose behalf the run is, "" when nobody said.
	Requester string `json:"requester,omitempty"`
	// Print is the [Fingerprint] of the graph that the run goes on with. A worker that has another asks the run for its
	// Spec.
	Print string `json:"print,omitempty"`
	// Suspect says that the thread continues a run that ended with this task perhaps under way.
	Suspect bool `json:"suspect,omitempty"`
	// Lost says that such a run, or a segment, was lost with what it did: its worker may go on when it thaws.
	Lost bool `json:"lost,omitempty"`
	// Behind is Env.Behind in milliseconds.
	Behind int64 `json:"behind_ms,omitempty"`
	// LedgerBytes bounds the task's ledger: the ledgers of all pending tasks of a run share 4 MiB of its mutable state.
	LedgerBytes int `json:"ledger_bytes"`
	// ReturnBytes is how large a result the task may return as it is; one that is larger is announced first, and fails the task
	// when it does not fit the run's history beside those of other tasks. 0 leaves it to the activity.
	ReturnBytes int `json:"return_bytes,omitempty"`
	// References are the large parts that the request goes without; see Fill.
	References []Reference `json:"references,omitempty"`
	// Trace is the run's place in a trace, "" for none.
	Trace string `json:"trace,omitempty"`
}

// Progress is what one execution of an activity leaves to the next: the first of the details of its heartbeats.
type Progress struct {
	// Tasks are the ledgers of the tasks under way, by pregel.Task.Key, as far as the activity's request did not bring them,
	// with the count of their attempts ([CarryOver]). An activity of a task of its own has one.
	Tasks map[string]pregel.Value `json:"tasks,omitempty"`
	// Losses are the executions since the last whose end is known, or that came further.
	Losses
	// Lost says that one before was lost, too. A segment leaves it out.
	Lost bool `json:"lost,omitempty"`
	// Returns is how large the result is that the task is about to return, 0 while that is not known: see NodeRequest.ReturnBytes.
	Returns int `json:"returns,omitempty"`
	// Settling is what a compensation waits for, nil when it does not wait.
	Settling *Settling `json:"settling,omitempty"`
	// Unstored says why what the task has returned cannot be stored now, in one line of at most 300 bytes; "" when nothing is held back
	// for that.
	Unstored string `json:"unstored,omitempty"`
	// Beat is the heartbeat's own.
	Beat Beat `json:"beat,omitzero"`
}

// Beat is a sign of life: the attempt that gave it, and when, in milliseconds of the server's clock.
type Beat struct {
	By int32 `json:"by"`
	At int64 `json:"at"`
}

// Settling is the wait of a compensation for an earlier call of its effect, which may show in the outside until then.
type Settling struct {
	Effect string    `json:"effect"`
	Key    string    `json:"key"`
	Until  time.Time `json:"until"`
}

// HistoryRoom is how many bytes of history a run fills at most. The server ends a run at 50 MiB, without a word: the rest is for
// the events that it had not counted yet (2 MiB), and for the run's own end.
const HistoryRoom = 44 << 20

// MaxResultBytes bounds what one activity returns where that goes by reference: as many bytes as a task may read so, since its worker and
// the run's hold all of it, more than once.
const MaxResultBytes = 64 << 20

// NodeFailure is the detail of the application error with which a node's activity gives up.
type NodeFailure struct {
	Error pregel.NodeError `json:"error"`
	// Emitted is what all attempts streamed.
	Emitted []pregel.Emission `json:"emitted,omitempty"`
	Ledger  pregel.Value      `json:"ledger,omitempty"`
}

// NodeCancelled is the detail of the cancelled error with which a node's activity stops.
type NodeCancelled struct {
	// Emitted is what all attempts streamed.
	Emitted []pregel.Emission `json:"emitted,omitempty"`
	Ledger  pregel.Value      `json:"ledger,omitempty"`
	// Lost says that an earlier execution was lost with its worker: in async and exit mode Ledger may miss what it did.
	Lost bool `json:"lost,omitempty"`
}

// UpdateActivity begins the ids of the activities that evaluate branches for an update of the state from outside: they
// are no tasks of the run.
const UpdateActivity = "update "

// The types of the application errors of a node's activity.
const (
	// NodeFailedType: the node failed for good; the detail is a NodeFailure.
	NodeFailedType = "superstep.NodeFailed"
	// NodeRetryType: the node failed and its policy tries again; or it is not yet time to.
	NodeRetryType = "superstep.NodeRetry"
	// NodeUnservedType: this worker has no such node; another one may.
	NodeUnservedType = "superstep.NodeUnserved"
	// NodeStoppedType: this worker stops; another one takes the task over.
	NodeStoppedType = "superstep.NodeStopped"
	// NodeInputType: this worker could not find what the node reads; another one may.
	NodeInputType = "superstep.NodeInput"
)

// Fill puts the values in place of the request's references, which are gone then. value returns the value that a
// reference stands for; it becomes the request's own. One that is not what its reference says is a [*WrongValueError].
// With an error nothing was filled in.
func (r *NodeRequest) Fill(value func(Reference) (pregel.Value, error)) error {
	if len(r.References) == 0 {
		return nil
	}
	filled, errs := *r, []error(nil)
	filled.References = nil
	filled.Task.State = maps.Clone(r.Task.State) // it may be shared
	for _, ref := range r.References {
		if err := Fill(ref, value, filled.put); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	*r = filled
	return nil
}

// put fills in one part.
func (r *NodeRequest) put(ref Reference, v pregel.Value) error {
	if r.Task.State == nil && (ref.Part == PartChannel || ref.Part == PartRest) {
		r.Task.State = map[string]pregel.Held{}
	}
	switch ref.Part {
	case PartChannel:
		r.Task.State[ref.Channel] = pregel.Hold(v)
	case PartRest:
		return json.Unmarshal(v, &r.Task.State) // adds to it
	case PartArg:
		r.Task.Arg = v
	case PartDone:
		return json.Unmarshal(v, &r.Task.Done)
	case PartContext:
		r.Context = v
	default:
		return UnknownPart(ref)
	}
	return nil
}

// LiveTask names a task of a run, for those who listen to what it emits while it runs.
type LiveTask struct {
	Thread string `json:"thread"`
	Run    string `json:"run"`
	// Task is the task's pregel.Task.Key.
	Task string `json:"task"`
}

// LiveEmission is what a node emitted, on its way to those who listen while the node runs. The node's result has it too.
type LiveEmission struct {
	Thread string `json:"thread"`
	Run    string `json:"run"`
	// Task is the task's pregel.Task.Key.
	Task string `json:"task"`
	// Scheduled is when the task was scheduled, by the server's clock: later when it was given back and scheduled again.
	// Execution counts its executions since, from 1: one that a worker was lost with counts too. Sequence counts the
	// emissions of one execution from 0.
	Scheduled time.Time       `json:"scheduled"`
	Execution int32           `json:"execution"`
	Sequence  int             `json:"sequence"`
	Emission  pregel.Emission `json:"emission"`
}

// Of is the task that emitted it.
func (e LiveEmission) Of() LiveTask { return LiveTask{Thread: e.Thread, Run: e.Run, Task: e.Task} }

// LedgerFrame bounds what the stored form of a ledger takes beside its entries, in bytes.
const LedgerFrame = 160

// FitLedger returns as much of a ledger as has at most that many bytes in its stored form, in its order; whole says that
// nothing is missing. Effects go first, if need be without parameters and receipt: that a call was started, and that the
// outside has it, is what nobody can find out by running the node again. Memoised results fill the rest.
func FitLedger(entries []ledger.Entry, most int) (fitted []ledger.Entry, whole bool) {
	total := LedgerFrame
	sizes := make([]int, len(entries))
	for i, e := range entries {
		sizes[i] = EntrySize(e)
		total += sizes[i]
	}
	if total <= most || len(entries) == 0 {
		return entries, true
	}
	kept := make([]*ledger.Entry, len(entries))
	left := most - LedgerFrame
	put := func(i int, e ledger.Entry, size int) {
		if size <= left {
			left -= size
			kept[i] = &e
		}
	}
	for i, e := range entries {
		if e.Outside() {
			put(i, e.Slim(), EntrySize(e.Slim()))
		}
	}
	for i, e := range entries {
		if kept[i] != nil {
			put(i, e, sizes[i]-EntrySize(*kept[i]))
		}
	}
	for i, e := range entries {
		if !e.Outside() {
			put(i, e, sizes[i])
		}
	}
	for _, e := range kept {
		if e != nil {
			fitted = append(fitted, *e)
		}
	}
	return fitted, false
}

// EntrySize is what an entry takes in a stored ledger, in bytes.
func EntrySize(e ledger.Entry) int {
	v, err := jsontext.Encode(e)
	if err != nil {
		return len(e.Params) + len(e.Result) + LedgerFrame // not JSON: refused when the ledger is encoded
	}
	return len(v) + 1
}

// SlimLedger returns a stored ledger without parameters, results and receipts. Of every call it says how far it got.
func SlimLedger(stored pregel.Value) (pregel.Value, error) {
	entries, between, err := DecodeCarryOver(stored)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		entries[i] = e.Slim()
	}
	return EncodeCarryOver(entries, between)
}
