package segment

import (
	"fmt"
	"slices"

	"superstep.dev/graphadapter/pregel"
)

// Mark is a place that a segment came through: whoever goes on from it need not deliver the outcomes before it. Nobody has
// to look at those but for what they were: no task asked, or came back with a ledger.
type Mark struct {
	// Deliveries is how many of the outcomes were delivered by then.
	Deliveries int `json:"deliveries"`
	// Loop is the run as it stood, suspended (pregel.Loop.Suspend).
	Loop pregel.Value `json:"loop"`
	// At is the byte of the packed outcomes at which those after the mark begin: they can be unpacked alone.
	At int `json:"at"`
}

// size is about what the mark takes as JSON.
func (m *Mark) size() int {
	if m == nil {
		return 0
	}
	return len(m.Loop)
}

// The bounds of marks: a suspended run takes as long to make as one to three supersteps that do nothing.
const (
	// markEvery is how many outcomes lie between two marks at least.
	markEvery = 64
	// maxMarkBytes bounds the suspended run of a mark.
	maxMarkBytes = 64 << 10
)

// marks are the places that a segment can be gone on from.
type marks struct {
	before int // supersteps that have to come after the one that is used; 0 for no marks
	all    []marked
	made   int  // deliveries
	last   int  // of them, at the newest mark or the last attempt to make one
	cost   int  // bytes of the newest mark: as many outcomes pay for the next
	passed int  // bytes of the outcomes by then
	over   bool // something was delivered that nobody may pass over, or the run is too large
}

// marked is a mark that was made.
type marked struct {
	step, made, text int // the superstep, the deliveries, and their size as JSON
	loop             pregel.Value
}

// delivered notes an outcome.
func (m *marks) delivered(o *pregel.Outcome) {
	m.made++
	m.over = m.over || len(o.Questions) > 0 || o.Ledger != nil || o.Kept != nil
}

// mark makes the place where the segment stands one that can be gone on from, if enough has happened since the last. The
// tasks in the queue are those that were handed out; others must not be under way.
func (s *Segment) mark(queue []*pregel.Task) {
	m, size := &s.marks, s.result.encoded.size
	if m.before == 0 || m.over || m.made-m.last < markEvery || size-m.passed < m.cost {
		return
	}
	s.loop.PutBack(queue...)
	defer s.loop.Ready() // the same ones
	if !s.loop.Quiet() {
		return // until the next superstep
	}
	m.last, m.passed = m.made, size
	loop, err := s.loop.Suspend()
	if err != nil || len(loop) > maxMarkBytes {
		m.over = true
		return
	}
	m.cost = len(loop)
	m.all = append(m.all, marked{step: s.loop.Step(), made: m.made, text: size, loop: loop})
	// All but the newest that is far enough back are of no use any more.
	if useful := m.usable(s.loop.Step()); useful > 0 {
		m.all = slices.Delete(m.all, 0, useful)
	}
}

// usable is the place of the newest mark that is far enough before a superstep; -1 for none.
func (m *marks) usable(step int) int {
	for i, one := range slices.Backward(m.all) {
		if step-one.step >= m.before {
			return i
		}
	}
	return -1
}

// chosen is the mark from which a segment that ends here is gone on from; nil for none.
func (m *marks) chosen(step int) *marked {
	if i := m.usable(step); i >= 0 {
		return &m.all[i]
	}
	return nil
}

// MarkedResult is a [SegmentResult] of which only what comes behind its mark is read at once.
type MarkedResult struct {
	Result       // its Deliveries are those behind the mark; without a mark all
	Mark   *Mark // nil for none

	packed []byte
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *MarkedResult) UnmarshalJSON(text []byte) error {
	var stored storedResult
	if err := stored.read(text, false); err != nil {
		return err
	}
	mark := stored.Mark
	if mark == nil {
		return r.take(stored)
	}
	if mark.At <= 0 || mark.At >= len(stored.Packed) {
		return fmt.Errorf("superstep: the mark of a segment has no place in its %d bytes", len(stored.Packed))
	}
	behind, err := unpackDeliveries(stored.Packed[mark.At:], true)
	if err != nil {
		return err
	}
	r.Result, r.Mark, r.packed = Result(stored.resultFields), mark, stored.Packed
	r.Deliveries = behind
	return nil
}

// Whole reads the outcomes before the mark too, and forgets the mark.
func (r *MarkedResult) Whole() (Result, error) {
	whole := r.Result
	if r.Mark == nil {
		return whole, nil
	}
	all, err := unpackDeliveries(r.packed, false)
	if err == nil && len(all) != r.Mark.Deliveries+len(r.Deliveries) {
		err = fmt.Errorf("superstep: the mark of a segment says %d of its %d outcomes come before it, %d come behind it",
			r.Mark.Deliveries, len(all), len(r.Deliveries))
	}
	whole.Deliveries = all
	return whole, err
}
