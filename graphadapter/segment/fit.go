package segment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// maxScratch bounds the memory, in bytes, that a segment keeps from one encoded outcome to the next.
const maxScratch = 64 << 10

// fit encodes an outcome, and returns it as whoever reads that finds it: encoding escapes and compacts what a node wrote,
// and the run's own engine must come to the same digests as this one. An outcome that no payload holds, or that nobody
// could read, is a failure of its node that says why. The text stands until the next call.
func (s *Segment) fit(t *pregel.Task, o pregel.Outcome) (Delivery, []byte) {
	d, encoded, err := asRead(s.delivery(t, o), s.scratch)
	switch {
	case err != nil:
		return s.unfit(t, o, "InvalidUpdateError", "the result is no JSON that can be read back: "+err.Error())
	case len(encoded) > maxOutcomeBytes:
		return s.unfit(t, o, "PayloadTooLarge", fmt.Sprintf("the result has %d bytes, at most %d can be stored: write a "+
			"reference to the value instead of the value", len(encoded), maxOutcomeBytes))
	}
	if cap(encoded) <= maxScratch {
		s.scratch = encoded[:0]
	}
	return d, encoded
}

// delivery is an outcome of a task under way, with the time that the task took.
func (s *Segment) delivery(t *pregel.Task, o pregel.Outcome) Delivery {
	d := deliveryOf(t, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if under, ok := s.under[t]; ok {
		d.Took = time.Since(under.began).Milliseconds()
	}
	return d
}

// unfit is the failure of a task that came back with what cannot be stored, with as much beside it as can.
func (s *Segment) unfit(t *pregel.Task, o pregel.Outcome, kind, why string) (d Delivery, encoded []byte) {
	problem := &pregel.NodeError{Type: kind, Message: why, Graph: s.graph.NameOf(t), Node: t.Node}
	short, _ := graphadapter.SlimLedger(o.Ledger) // of a task under way, which has read it
	for _, left := range []pregel.Outcome{
		{Emitted: taskrun.KeepEmitted(o.Emitted, maxOutcomeBytes/2-len(o.Ledger)), Ledger: o.Ledger, Kept: o.Kept},
		{Ledger: o.Ledger, Kept: o.Kept}, // an emission, or a receipt, is what cannot be read
		{Ledger: short, Kept: o.Kept},
	} {
		var err error
		left.Error = problem
		if d, encoded, err = asRead(s.delivery(t, left), nil); err == nil {
			break
		}
	}
	return d, encoded
}

// asRead returns a delivery as it is read, and encoded. A value that is nested as deep as a reader goes is too deep within
// what is made of it: a segment's result, a state, a checkpoint.
func asRead(d Delivery, room []byte) (read Delivery, encoded []byte, err error) {
	read, encoded, plain := asPlain(d, room)
	if !plain {
		read, encoded, err = asStored(d)
	}
	if err == nil && len(encoded) > maxNested && !json.Valid(slices.Concat(outerOpen, encoded, outerClose)) {
		err = errors.New("its values are nested too deep")
	}
	return read, encoded, err
}

// asStored takes a delivery through JSON, whatever it is.
func asStored(d Delivery) (read Delivery, encoded []byte, err error) {
	if encoded, err = json.Marshal(d); err == nil {
		err = json.Unmarshal(encoded, &read)
	}
	return read, encoded, err
}

// maxNested is less than how deep encoding/json reads; as many bytes are the least that has that depth.
const maxNested = 9000

// outerOpen and outerClose stand for what values are stored within.
var outerOpen, outerClose = bytes.Repeat([]byte("["), 100), bytes.Repeat([]byte("]"), 100)
