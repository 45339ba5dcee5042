package segment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// Delivery is one task's outcome, as a segment gave it to its engine.
type Delivery struct {
	// Key is pregel.Task.Key, Digest the first 8 hex digits of pregel.Task.Digest. Without a Key it is the outcome of the
	// only task that is handed out; then a Digest that is empty is not compared.
	Key     string
	Digest  string
	Outcome pregel.Outcome
	// Took is how many milliseconds the task was under way in the execution that it ended in, for people: nothing follows
	// from it.
	Took int64
}

// DropLast returns the deliveries with those of the last superstep as of tasks that were cancelled: the superstep was under way when its run
// was told to drop it.
func DropLast(graph string, all []Delivery) []Delivery {
	out := slices.Clone(all)
	for i := len(out) - 1; i >= 0 && out[i].rootStep() == out[len(out)-1].rootStep(); i-- {
		_, node := out[i].Place()
		out[i].Outcome = taskrun.Dropped(graph, node, out[i].Outcome)
		if out[i].Key == "" {
			break // the only task of its superstep
		}
	}
	return out
}

// rootStep is the superstep of the root graph in which the delivery's task ran, "" where it is not named.
func (d Delivery) rootStep() string {
	place := d.Key
	if at := strings.IndexByte(place, '!'); at >= 0 {
		place = place[at+1:]
	}
	step, _, _ := strings.Cut(place, "/")
	return step
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
