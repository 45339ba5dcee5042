package segment

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Request is the input of a segment: consecutive supersteps of a run that one activity runs.
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
	// ResumeBefore asks for a resume point in the result: the newest that is at least so many supersteps before where the
	// segment ends. 0 asks for none.
	ResumeBefore int `json:"resume_before,omitempty"`
	// Single ends the segment with its first superstep.
	Single bool `json:"single,omitempty"`
	// References are the large parts that the request goes without.
	References []graphadapter.Reference `json:"references,omitempty"`
	// Trace is the run's place in a trace, "" for none. With one outcomes say when their tasks began.
	Trace string `json:"trace,omitempty"`
}

// Opening is the input of the local activity in which a segment begins: its first half second runs within
// the workflow task that scheduled it, and a short segment ends there, with the bytes of [Result.Encode]. In sync mode it ends with
// its first superstep, which is stored when the workflow task completes: nothing else begins before. A segment that is
// not through by then, or is about to act outside, returns nothing, and goes on in its activity, which takes it over where
// that runs on the same worker. Nobody can tell a repeated local activity from the first, so nothing in it acts outside.
type Opening struct {
	Request Request // without its Loop; nothing else of it goes by reference
	// Run is the run as it stands. An argument of a local activity stays in its process.
	Run pregel.Frozen
	// ActivityID is that of the activity in which the segment goes on.
	ActivityID string
	// Again says that this worker was probably given what another one could not finish: the segment begins in its activity,
	// where lost workers are counted.
	Again bool
	// At is the server's time when it begins. The clock of the worker may be another one, and what a task is to wait for is stored.
	At time.Time
}

// Open prepares the segment's execution by g, the root graph. The errors are those of [OpenSegment].
func (o *Opening) Open(g *graphadapter.Graph) (*Segment, error) {
	return openSegment(g, &o.Request, func(p *pregel.Program) (*pregel.Loop, error) { return o.Run.Restore(p, nil) })
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

// Serves drops the Spec, or the reference to it, when that is the one of g: g is compiled already.
func (r *Request) Serves(g *graphadapter.Graph) error {
	print, err := g.Fingerprint()
	if err == nil && print == r.Print {
		r.Spec = nil
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

// suspects are the tasks that an execution which was lost may have run without a trace.
//
// In sync mode a superstep begins when the one before is durable, so a lost execution was at the first that is not: its
// tasks are those that are ready when the record has been delivered. In async and exit mode it may have been at any
// later one; nobody knows how far it came, so all are suspect, also in segments after this one, up to where the lost
// execution cannot have passed by itself: a question, an end, tasks that are for other workers.
type suspects struct {
	all, lost bool
	tasks     []string
}

func newSuspects(req *Request, repeated bool, ready []*pregel.Task) suspects {
	s := suspects{all: req.Suspect.All, lost: req.Suspect.Lost, tasks: slices.Clone(req.Suspect.Tasks)}
	if !repeated {
		return s
	}
	if graphadapter.IsRelaxed(req.Durability) {
		s.all, s.lost = true, true
	}
	for _, t := range ready {
		s.tasks = append(s.tasks, t.Key())
	}
	return s
}

func (s *suspects) has(t *pregel.Task) bool { return s.all || slices.Contains(s.tasks, t.Key()) }

// rest are those that have not been run since.
func (s *suspects) rest(queue []*pregel.Task) Suspicion {
	out := Suspicion{All: s.all, Lost: s.lost}
	for _, t := range queue {
		if slices.Contains(s.tasks, t.Key()) {
			out.Tasks = append(out.Tasks, t.Key())
		}
	}
	return out
}

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
	// Follows says of an opening that its worker has the run's next workflow task follow this one, when the run wants that.
	Follows bool `json:"follows,omitempty"`

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
	if r.Deliveries, err = decodeBlocks(c.left, behind, maxResultText); err != nil {
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
	before, err := decodeBlocks(r.before, r.Made, maxResultText)
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
