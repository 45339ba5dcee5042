package segment

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"superstep.dev/graphadapter/pregel"
)

// Result is what a segment leaves behind.
type Result struct {
	// Deliveries are the outcomes in the order in which they were delivered: whoever delivers the same to the loop that
	// was suspended comes to the same place. What [Segment.Run] returns has them as frames only: see [Result.Encode].
	Deliveries []Delivery `json:"-"`
	// Apart says that the tasks which are to run now are not for a segment: this worker does not serve one of them, or the
	// outcome of one does not fit beside others.
	Apart bool `json:"apart,omitempty"`
	// Expired says that the superstep under way ran out of time.
	Expired bool `json:"expired,omitempty"`
	// Suspect says which tasks of those that come next may have been run already, by an execution that was lost.
	Suspect Suspicion `json:"suspect,omitzero"`
	// Left are tasks that were under way and are given back, by their keys: their ledgers, as far as they are new.
	Left map[string]pregel.Value `json:"left,omitempty"`

	made   int        // deliveries
	frames []byte     // the deliveries, as a segment encoded them
	resume *madePoint // nil for no resume point
}

// StoredResult is a [Result] of which only what comes behind its resume point is read at once.
type StoredResult struct {
	Made   int          `json:"made"` // how many Deliveries there are in all
	Result              // its Deliveries are those behind the resume point; without one all
	Resume *ResumePoint `json:"resume,omitempty"` // nil for none

	before []byte // the blocks before the resume point
}

// ResumePoint is a place that a segment came through: whoever goes on from it need not deliver the outcomes before it. Nobody
// has to look at those but for what they were: no task asked, or came back with a ledger.
type ResumePoint struct {
	// Deliveries is how many of the outcomes were delivered by then.
	Deliveries int `json:"deliveries"`
	// Loop is the run as it stood, suspended (pregel.Loop.Suspend).
	Loop pregel.Value `json:"loop"`
}

// madePoint is a resume point that was made, with its superstep, and the bytes of the frames by then.
type madePoint struct {
	step, frames int
	point        ResumePoint
}

// Encode returns the result of a segment's execution as its activity returns it: the length of the JSON of what is not
// deliveries, that JSON, the length of the blocks before the resume point, those blocks, and the ones behind it. A result whose Deliveries were read already cannot be encoded.
func (r *Result) Encode() ([]byte, error) {
	if len(r.Deliveries) > 0 {
		return nil, errors.New("superstep: only a result that Segment.Run returned is encoded, not one that was read")
	}
	stored, at := StoredResult{Made: r.made, Result: *r}, 0
	if r.resume != nil {
		stored.Resume, at = &r.resume.point, r.resume.frames
	}
	header, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	out := append(binary.AppendUvarint(nil, uint64(len(header))), header...)
	before := appendBlock(nil, "", r.frames[:at])
	out = append(binary.AppendUvarint(out, uint64(len(before))), before...)
	return appendBlock(out, "", r.frames[at:]), nil
}

// DecodeResult reads what [Result.Encode] wrote, to its resume point.
func DecodeResult(encoded []byte) (*StoredResult, error) {
	c := coder{left: encoded}
	header := c.bytes()
	r := &StoredResult{before: c.bytes()}
	err := c.err
	if err == nil {
		err = json.Unmarshal(header, r)
	}
	if err == nil && (r.Resume != nil) != (len(r.before) > 0) {
		err = errors.New("it has a resume point without outcomes before it, or the other way round")
	}
	if err != nil {
		return nil, fmt.Errorf("superstep: the result of a segment cannot be read: %w", err)
	}
	behind := r.Made
	if r.Resume != nil {
		behind -= r.Resume.Deliveries
	}
	if r.Deliveries, err = decodeBlocks(c.left, behind); err != nil {
		return nil, err
	}
	if r.Resume == nil && len(r.Deliveries) != r.Made {
		return nil, r.miscounted(len(r.Deliveries))
	}
	return r, nil
}

// DecodeWhole reads what [Result.Encode] wrote, with all of its outcomes.
func DecodeWhole(encoded []byte) (Result, error) {
	stored, err := DecodeResult(encoded)
	if err != nil {
		return Result{}, err
	}
	return stored.Whole()
}

// Whole reads the outcomes before the resume point too, and forgets that.
func (r *StoredResult) Whole() (Result, error) {
	whole := r.Result
	if r.Resume == nil {
		return whole, nil
	}
	before, err := decodeBlocks(r.before, r.Made)
	if err != nil {
		return Result{}, err
	}
	whole.Deliveries = append(before, r.Deliveries...)
	if len(before) != r.Resume.Deliveries || len(whole.Deliveries) != r.Made {
		return Result{}, r.miscounted(len(whole.Deliveries))
	}
	return whole, nil
}

func (r *StoredResult) miscounted(found int) error {
	return fmt.Errorf("superstep: the result of a segment cannot be read: it is of %d outcomes and has %d", r.Made, found)
}
