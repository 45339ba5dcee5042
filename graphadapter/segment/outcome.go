package segment

import (
	"fmt"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// encode returns an outcome's frame, and the outcome as whoever reads that finds it: encoding escapes and compacts what a node
// wrote, and the run's own engine must come to the same digests as this one. An outcome that no payload holds, or that nobody
// could read, is a failure of its node that says why. The frame stands until the next call.
func (s *Segment) encode(t *pregel.Task, o pregel.Outcome) (Delivery, []byte) {
	d, frame, err := s.coder.roundTrip(s.delivery(t, o))
	switch {
	case err != nil:
		return s.encodeFailure(t, o, "InvalidUpdateError", "the result is no JSON that can be read back: "+err.Error())
	case len(frame) > maxOutcomeBytes:
		return s.encodeFailure(t, o, "PayloadTooLarge", fmt.Sprintf("the result has %d bytes, at most %d can be stored: write a "+
			"reference to the value instead of the value", len(frame), maxOutcomeBytes))
	}
	return d, frame
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

// encodeFailure is the failure of a task that came back with what cannot be stored, with as much beside it as can.
func (s *Segment) encodeFailure(t *pregel.Task, o pregel.Outcome, kind, why string) (d Delivery, frame []byte) {
	problem := &pregel.NodeError{Type: kind, Message: why, Graph: s.graph.NameOf(t), Node: t.Node}
	short, _ := graphadapter.SlimLedger(o.Ledger) // of a task under way, which has read it
	for _, left := range []pregel.Outcome{
		{Emitted: taskrun.KeepEmitted(o.Emitted, maxOutcomeBytes/2-len(o.Ledger)), Ledger: o.Ledger, Kept: o.Kept},
		{Ledger: o.Ledger, Kept: o.Kept}, // an emission, or a receipt, is what cannot be read
		{Ledger: short, Kept: o.Kept},
	} {
		var err error
		left.Error = problem
		if d, frame, err = s.coder.roundTrip(s.delivery(t, left)); err == nil {
			break
		}
	}
	return d, frame
}
