package segment

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// SegmentRequest is the input of a segment: consecutive supersteps of a run that one activity runs.
type Request struct {
	Graph  string `json:"graph"`
	Thread string `json:"thread"`
	// Print is the fingerprint of the Spec that the run goes on with. Spec is that Spec; nil when the graph that is
	// served has the same fingerprint.
	Print string       `json:"print"`
	Spec  *pregel.Spec `json:"spec,omitempty"`
	// Loop is the run, suspended (pregel.Loop.Suspend).
	Loop       pregel.Value            `json:"loop,omitempty"`
	Durability graphadapter.Durability `json:"durability,omitempty"`
	// Context is the run's context value; nil for none.
	Context pregel.Value `json:"context,omitempty"`
	// Requester is on whose behalf the run is, "" when nobody said.
	Requester string `json:"requester,omitempty"`
	// OriginalRunID is as in [NodeRequest].
	OriginalRunID string `json:"original_run_id"`
	// Suspect says which tasks an earlier execution may have run without a trace.
	Suspect Suspicion `json:"suspect,omitzero"`
	// Behind is Env.Behind in milliseconds, when the segment was scheduled.
	Behind int64 `json:"behind_ms,omitempty"`
	// LedgerBytes bounds what heartbeats carry of the record, and of the ledgers of the tasks under way.
	LedgerBytes int `json:"ledger_bytes"`
	// MaxConcurrency bounds the tasks under way at once, StepTimeout a superstep's wall clock in milliseconds; 0 means no
	// bound.
	MaxConcurrency int   `json:"max_concurrency,omitempty"`
	StepTimeout    int64 `json:"step_timeout_ms,omitempty"`
	// Pack says that whoever asks reads a result that is packed.
	Pack bool `json:"pack,omitempty"`
	// MarkBefore asks for a mark in the result: the newest that is at least so many supersteps before where the segment
	// ends. 0 asks for none.
	MarkBefore int `json:"mark_before,omitempty"`
	// References are the large parts that the request goes without.
	References []graphadapter.Reference `json:"references,omitempty"`
}

// Fill puts the values in place of the request's references; see NodeRequest.Fill.
func (r *Request) Fill(value func(graphadapter.Reference) (pregel.Value, error)) error {
	filled := *r
	filled.References = nil
	for _, ref := range r.References {
		if err := graphadapter.Fill(ref, value, filled.put); err != nil {
			return err
		}
	}
	*r = filled
	return nil
}

func (r *Request) put(ref graphadapter.Reference, v pregel.Value) error {
	switch ref.Part {
	case graphadapter.PartLoop:
		r.Loop = v
	case graphadapter.PartContext:
		r.Context = v
	case graphadapter.PartSpec:
		return json.Unmarshal(v, &r.Spec)
	default:
		return graphadapter.UnknownPart(ref)
	}
	return nil
}

// Serves drops the reference to the Spec when that is the one of g: g is compiled already.
func (r *Request) Serves(g *graphadapter.Graph) error {
	print, err := graphadapter.Fingerprint(g.Spec)
	if err == nil && print == r.Print {
		r.References = slices.DeleteFunc(r.References, func(ref graphadapter.Reference) bool { return ref.Part == graphadapter.PartSpec })
	}
	return err
}

// Suspicion says which tasks may have acted outside in an execution that left no trace of them: all that run from here
// on, or those of these keys (pregel.Task.Key).
type Suspicion struct {
	All   bool     `json:"all,omitempty"`
	Tasks []string `json:"tasks,omitempty"`
	// Lost says that there was such an execution indeed: what it did is not known until its tasks have run again. Without
	// Lost, All is a precaution.
	Lost bool `json:"lost,omitempty"`
}

// Delivery is one task's outcome, as a segment gave it to its engine.
type Delivery struct {
	// Key is pregel.Task.Key, Digest the first 8 hex digits of pregel.Task.Digest. Without a Key it is the outcome of the
	// only task that is handed out; then a Digest that is empty is not compared.
	Key     string         `json:"key"`
	Digest  string         `json:"digest"`
	Outcome pregel.Outcome `json:"outcome"`
	// Took is how many milliseconds the task was under way in the execution that it ended in, for people: nothing follows
	// from it.
	Took int64 `json:"took_ms,omitempty"`
}

// Place returns the superstep and the node of the delivery's task.
func (d Delivery) Place() (step int, node string) {
	place := d.Key[strings.LastIndexByte(d.Key, '|')+1:]
	place = place[strings.LastIndexByte(place, '!')+1:]
	number, path, _ := strings.Cut(place, "/")
	step, _ = strconv.Atoi(number) // Task.Key wrote it
	node, _, _ = strings.Cut(path, ":")
	return step, node
}

// SegmentResult is what a segment leaves behind.
type Result struct {
	// Deliveries are the outcomes in the order in which they were delivered: whoever delivers the same to the loop that
	// was suspended comes to the same place.
	//
	// What [Segment.Run] returns has them as JSON only, which MarshalJSON writes; many of them are packed, if they may be.
	Deliveries []Delivery `json:"deliveries"`
	// Apart says that the tasks which are to run now are not for a segment: this worker does not serve one of them, or the
	// outcome of one does not fit beside others.
	Apart bool `json:"apart,omitempty"`
	// Expired says that the superstep under way ran out of time.
	Expired bool `json:"expired,omitempty"`
	// Suspect says which tasks of those that come next may have been run already, by an execution that was lost.
	Suspect Suspicion `json:"suspect,omitzero"`
	// Left are tasks that were under way and are given back, by their keys: their ledgers, as far as they are new.
	Left map[string]pregel.Value `json:"left,omitempty"`

	encoded blocks // the deliveries as JSON, one after the other, as a segment recorded them; empty for none
	pack    bool
	mark    *marked // nil for none
}

// digestBytes is how much of a task's digest a [Delivery] has.
const digestBytes = 8

// deliveryOf is a task's outcome as it is recorded.
func deliveryOf(t *pregel.Task, o pregel.Outcome) Delivery {
	return Delivery{Key: t.Key(), Digest: t.Digest[:min(digestBytes, len(t.Digest))], Outcome: o}
}

// Redeliver gives a loop outcomes that another one had, which was suspended from it, and returns the tasks that it has
// handed out then and that are to run. ready are those that it has handed out before. between, unless it is nil, is called
// between two deliveries with the number of those that were made. Deliveries that have no Key get it, and their Digest.
//
// The error is a [*StrayDeliveryError]: the outcomes before were delivered.
func Redeliver(loop *pregel.Loop, ready []*pregel.Task, all []Delivery, between func(int)) ([]*pregel.Task, error) {
	out := newHandedOut(ready)
	for i := range all {
		d := &all[i]
		task, ok := out.take(d)
		if !ok {
			return out.order, &StrayDeliveryError{Key: d.Key, Digest: d.Digest}
		}
		loop.Deliver(task, d.Outcome)
		out.add(loop.Ready())
		if between != nil && i < len(all)-1 {
			between(i + 1)
		}
	}
	return out.order, nil
}

// Yield puts on record what executions did in tasks that they gave back, or were lost with, and returns the tasks that
// are to run. ready are those that the loop has handed out.
func Yield(loop *pregel.Loop, ready []*pregel.Task, left map[string]pregel.Value) ([]*pregel.Task, error) {
	out := newHandedOut(ready)
	for _, t := range ready {
		news, ok := left[t.Key()]
		if !ok || t.Retry != nil { // whether to run a subgraph on is asked again
			continue
		}
		stored, err := graphadapter.MergeLedger(t.Ledger, news)
		if err != nil {
			return out.order, fmt.Errorf("the task %s was given back: %w", t.Key(), err)
		}
		out.remove(t, t.Key())
		loop.Deliver(t, pregel.Outcome{Yielded: true, Ledger: stored, Kept: taskrun.KeptIn(t, stored)})
		out.add(loop.Ready())
	}
	return out.order, nil
}

// handedOut are tasks that a loop has handed out and that have not come back, by their keys and in their order.
type handedOut struct {
	order []*pregel.Task
	byKey map[string]*pregel.Task
}

func newHandedOut(tasks []*pregel.Task) *handedOut {
	h := &handedOut{byKey: map[string]*pregel.Task{}}
	h.add(tasks)
	return h
}

func (h *handedOut) add(tasks []*pregel.Task) {
	for _, t := range tasks {
		h.byKey[t.Key()] = t
		h.order = append(h.order, t)
	}
}

// take removes the task that an outcome is of, and completes the delivery.
func (h *handedOut) take(d *Delivery) (*pregel.Task, bool) {
	t, ok := h.byKey[d.Key]
	if d.Key == "" && len(h.order) == 1 {
		t, ok = h.order[0], true
	}
	if !ok {
		return nil, false
	}
	of := deliveryOf(t, d.Outcome)
	of.Took = d.Took
	if d.Digest != of.Digest && (d.Key != "" || d.Digest != "") {
		return nil, false
	}
	*d = of
	h.remove(t, of.Key)
	return t, true
}

func (h *handedOut) remove(t *pregel.Task, key string) {
	delete(h.byKey, key)
	for i := range h.order {
		if h.order[i] == t {
			h.order = append(h.order[:i:i], h.order[i+1:]...)
			break
		}
	}
}

// StrayDeliveryError says that an outcome is of a task that the engine has not handed out: its reducers or its engine are
// not those of the worker that ran the segment. Without a Key it is of the only task that was handed out.
type StrayDeliveryError struct{ Key, Digest string }

func (e *StrayDeliveryError) Error() string {
	return fmt.Sprintf("there is an outcome of the task %q with digest %q, which this worker's engine has not handed out: its "+
		"reducers or its engine are not those of the worker that ran the task; run a worker with that version",
		e.Key, e.Digest)
}
