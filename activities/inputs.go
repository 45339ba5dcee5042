package activities

import (
	"bytes"
	"context"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// DefaultInputBytes is what a worker keeps of the values that its runs send by reference, unless told otherwise: 128
// MiB. A value that is still there costs a lookup, any other a replay of its run.
const DefaultInputBytes = 128 << 20

// Inputs find the values that requests carry by reference: among those that this worker's workflows sent a moment ago,
// or by replaying the run. Replays are shared by the tasks that need them, and few run at once. It is safe for
// concurrent use.
type Inputs struct {
	cache   *cache
	rebuild *rebuilder
}

// NewInputs returns inputs that keep at most that many bytes of values (0 means [DefaultInputBytes]) and get others by
// rebuild.
func NewInputs(bytes int, rebuild Rebuild) *Inputs {
	if bytes == 0 {
		bytes = DefaultInputBytes
	}
	c := newCache(bytes)
	return &Inputs{cache: c, rebuild: newRebuilder(c, rebuild)}
}

// Sent takes in a value that a task is about to read (it implements workflows.Values). It does not copy: nobody may
// change v.
func (i *Inputs) Sent(digest string, v pregel.Value) { i.cache.put(digest, v) }

// Passed takes in nothing: a run that is taken over comes by all that it ever sent, and the task that is still under way
// reads only the last of it.
func (i *Inputs) Passed(pregel.Value) {}

// fill puts the request's values in their places.
func (i *Inputs) fill(ctx context.Context, run Run, req *graphadapter.NodeRequest) error {
	return i.fillIn(ctx, run, req.References, req.Fill)
}

// fillIn finds the values of these references, and has them put in their places.
func (i *Inputs) fillIn(ctx context.Context, run Run, refs []graphadapter.Reference,
	put func(func(graphadapter.Reference) (pregel.Value, error)) error) error {
	values, all := i.rebuild.cached(refs)
	if !all {
		var err error
		if values, err = i.rebuild.find(ctx, run, refs); err != nil {
			return err
		}
	}
	return put(func(ref graphadapter.Reference) (pregel.Value, error) {
		v, ok := values[ref.Digest]
		if !ok {
			return nil, &LostInputError{Reference: ref}
		}
		return bytes.Clone(v), nil // a node that changes what it was given changes its own only
	})
}

// LostInputError says that a run, replayed by this worker, never sends the value that a task of it was sent.
type LostInputError struct{ Reference graphadapter.Reference }

func (e *LostInputError) Error() string {
	return fmt.Sprintf("the run, replayed by this worker, sends no %s of %d bytes with digest %.12s…: its reducers or "+
		"its engine are not those of the worker that scheduled the task", e.Reference.Reads(), e.Reference.Size, e.Reference.Digest)
}

// InputError says that this worker could not find what a node reads. The node did not run; the task waits for a worker
// that can.
type InputError struct {
	Graph, Node, Thread, Run string
	Err                      error
}

func (e *InputError) Error() string {
	reader := fmt.Sprintf("node %q of graph %q reads", e.Node, e.Graph)
	if e.Node == "" { // of a segment, which runs many
		reader = fmt.Sprintf("the supersteps of graph %q read", e.Graph)
	}
	return fmt.Sprintf("this worker cannot find what %s (thread %s, run %s): %v; run a worker with the graph's version that the run is "+
		"on, and with the data converter of the Temporal client", reader, e.Thread, e.Run, e.Err)
}

// Unwrap returns what went wrong.
func (e *InputError) Unwrap() error { return e.Err }
