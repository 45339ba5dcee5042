package segment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// SegmentActivity is the type of the activity that runs segments. No node's activity has that name: a graph's name has no
// dot, and theirs begin with the graph's name.
const SegmentActivity = "superstep.segment"

// OpeningActivity is the type of the local activity in which a segment begins: see [Opening].
const OpeningActivity = "superstep.opening"

// The bounds of a segment.
const (
	// maxSegmentTime is how long a segment goes on while it could leave: others wait for its worker.
	maxSegmentTime = 30 * time.Second
	// maxSegmentTasks bounds the tasks that a segment has under way at once.
	maxSegmentTasks = 500
)

// Host is where a segment runs: what a worker, or a test, does for it.
type Host struct {
	// Keep makes the segment's [Segment.Record] and [Segment.Left] durable, before each of its supersteps but the first. In sync mode it
	// returns when it is; in async mode it returns at once, mostly, and in exit mode it has only life to tell. An error
	// means that it may not be, or that another execution owns the segment ([ErrFenced]). Nil keeps nothing.
	//
	// What the host learns in it, that the segment is to leave, counts for the superstep that it is called before.
	Keep func(ctx context.Context) error
	// Leave is closed when the segment is to leave as soon as no task is under way; nil for never.
	Leave <-chan struct{}
	// Prepare completes the environment of one task's execution, its Emit for one; it may be nil.
	Prepare func(*pregel.Task, *taskrun.Env)
	// Begin returns when a task's memoised call or effect may begin, or why it may not; nil lets all begin.
	Begin func(ctx context.Context) error
	// Over is told of a task that has ended, with its outcome recorded: it does not run again in this run. It may be nil.
	Over func(*pregel.Task)
	// Refuse ends a task before it runs; nil for no.
	Refuse func(*pregel.Task) *pregel.Outcome
	// Now is the clock by which tasks are told when their next attempt may begin; nil is this process's.
	Now func() time.Time
	// MaxTime is how long the segment goes on while it could leave; 0 means 30 s.
	MaxTime time.Duration
	// MostBytes bounds what the segment brings back, at most graphadapter.MaxResultBytes; 0 means what one payload holds. A task that ends
	// when there is no room for its outcome comes back without.
	MostBytes int
}

// Segment is one execution of consecutive supersteps of a run.
type Segment struct {
	graph   *graphadapter.Graph
	program *pregel.Program
	req     *Request
	host    Host
	ctx     context.Context // Run's
	loop    *pregel.Loop
	ready   []*pregel.Task // handed out when the execution began
	record  *segmentRecord
	result  Result
	bytes   int // of the outcomes, as frames, and their outcomeCost
	coder   coder
	began   time.Time
	leaving bool
	unkept  bool // something was delivered since Keep
	suspect suspects
	// returned are tasks that were given back without an outcome.
	returned []*pregel.Task

	mu    sync.Mutex
	under map[*pregel.Task]*underWay // the tasks under way
	left  map[string]pregel.Value    // what is new in the ledgers of tasks that are not under way

	resume  resumePoints
	decoded *sync.Map // nil for a map of its own
}

// OpenSegment prepares an execution of a segment by g, the root graph. repeated says that an earlier execution may have
// acted; record and left are what its heartbeats had of [Segment.Record] and [Segment.Left].
//
// Errors: an [*UnservedError] when this process does not have what the run's graph needs; a [*StrayDeliveryError] when
// its engine comes to other tasks than the record has.
func OpenSegment(g *graphadapter.Graph, req *Request, repeated bool, record []Delivery, left map[string]pregel.Value) (*Segment, error) {
	s, err := openSegment(g, req, func(p *pregel.Program) (*pregel.Loop, error) { return p.Restore(req.Loop, nil) })
	if err != nil {
		return nil, err
	}
	bare := make([]bool, len(record))
	for i := range record {
		bare[i] = record[i].Key == ""
	}
	if s.ready, err = Redeliver(s.loop, s.ready, record, nil); err != nil {
		return nil, err
	}
	for i := range record {
		frame, err := s.coder.encode(&record[i])
		if err != nil {
			return nil, err
		}
		s.note(&record[i], frame, bare[i])
	}
	s.unkept = false
	maps.Copy(s.left, left)
	s.suspect = newSuspects(req, repeated, s.ready)
	return s, nil
}

// openSegment prepares the first execution of a segment.
func openSegment(g *graphadapter.Graph, req *Request, restore func(*pregel.Program) (*pregel.Loop, error)) (*Segment, error) {
	program, err := programFor(g, req)
	if err != nil {
		return nil, err
	}
	loop, err := restore(program)
	if err != nil {
		return nil, fmt.Errorf("the suspended run of graph %q, thread %q: %w", req.Graph, req.Thread, err)
	}
	s := &Segment{graph: g, program: program, req: req, loop: loop, record: newSegmentRecord(req.LedgerBytes),
		began: time.Now(), under: map[*pregel.Task]*underWay{}, left: map[string]pregel.Value{},
		resume: resumePoints{before: req.ResumeBefore}, ready: loop.Ready()}
	s.suspect = newSuspects(req, false, s.ready)
	return s, nil
}

// KeepDecoded makes the segment's tasks find what others have decoded of the same thread's state, in earlier runs too: see
// [graphadapter.RunOptions].
func (s *Segment) KeepDecoded(decoded *sync.Map) { s.decoded = decoded }

// Run runs supersteps until one cannot be part of the segment: there are questions, or the run ends, or the next tasks
// are for other workers, or the record is full, or the time is up, or the host wants it to leave. It leaves only when no
// task is under way.
//
// When ctx ends with [ErrRunCancelled] as its cause, the nodes' contexts end and the result has how their tasks ended; with
// [ErrWorkerStops] they are given back. With any other cause the error is that cause, and the execution counts for nothing
// but what was kept.
func (s *Segment) Run(ctx context.Context, host Host) (Result, error) {
	s.host, s.ctx = host, ctx
	defer s.record.close()
	s.loop.PutBack(s.ready...)
	opts := graphadapter.RunOptions{MaxConcurrency: s.req.MaxConcurrency, StepTimeout: time.Duration(s.req.StepTimeout) * time.Millisecond,
		Decoded: s.decoded}
	if opts.MaxConcurrency <= 0 || opts.MaxConcurrency > maxSegmentTasks {
		opts.MaxConcurrency = maxSegmentTasks
	}
	d := taskrun.NewDriver(s.program, s.loop, opts, s, s)
	defer d.Close()
	_ = d.Drive(ctx) // the run is not held here: there is no gate
	if err := context.Cause(ctx); err != nil && !errors.Is(err, ErrRunCancelled) && !errors.Is(err, ErrWorkerStops) {
		return Result{}, err
	}
	s.result.Expired = d.Expired()
	s.result.Suspect = s.suspect.rest(d.Queue())
	s.result.Left = s.leftovers(d.Queue())
	s.result.resume = s.resume.chosen(s.loop.Step())
	return s.result, nil
}

// The causes of a context with which a segment ends in order.
var (
	ErrRunCancelled = errors.New("superstep: the run was cancelled")
	ErrWorkerStops  = errors.New("superstep: this worker stops, another one goes on")
)

// programFor compiles the Spec that the run goes on with, unless the graph has the same.
func programFor(g *graphadapter.Graph, req *Request) (*pregel.Program, error) {
	if req.Spec == nil {
		return g.Program()
	}
	if err := g.CheckFields(req.Spec); err != nil {
		return nil, err
	}
	program, err := pregel.Compile(req.Spec, g.AllReducers())
	var reducer *pregel.UnknownReducerError
	if errors.As(err, &reducer) {
		return nil, &graphadapter.UnservedError{Graph: req.Graph, Node: "", Missing: fmt.Sprintf("reducer: %v", err)}
	}
	return program, err
}

// The bounds of resume points: a suspended run takes as long to make as one to three supersteps that do nothing.
const (
	// resumeEvery is how many outcomes lie between two resume points at least.
	resumeEvery = 64
	// maxResumeBytes bounds the suspended run of a resume point.
	maxResumeBytes = 64 << 10
)

// resumePoints are the places that a segment can be gone on from.
type resumePoints struct {
	before int // supersteps that have to come after the one that is used; 0 for no resume points
	all    []madePoint
	last   int  // of them, at the newest resume point or the last attempt to make one
	cost   int  // bytes of the newest resume point: as many outcomes pay for the next
	passed int  // bytes of the outcomes by then
	over   bool // something was delivered that nobody may pass over, or the run is too large
}

// delivered notes an outcome.
func (p *resumePoints) delivered(o *pregel.Outcome) {
	p.over = p.over || len(o.Questions) > 0 || o.Ledger != nil || o.Kept != nil
}

// makeResumePoint makes the place where the segment stands one that can be gone on from, if enough has happened since the
// last. The tasks in the queue are those that were handed out; others must not be under way.
func (s *Segment) makeResumePoint(queue []*pregel.Task) {
	p := &s.resume
	if p.before == 0 || p.over || s.result.made-p.last < resumeEvery || s.bytes-p.passed < p.cost {
		return
	}
	s.loop.PutBack(queue...)
	defer s.loop.Ready() // the same ones
	if !s.loop.Quiet() {
		return // until the next superstep
	}
	p.last, p.passed = s.result.made, s.bytes
	loop, err := s.loop.Suspend()
	if err != nil || len(loop) > maxResumeBytes {
		p.over = true
		return
	}
	p.cost = len(loop)
	p.all = append(p.all, madePoint{step: s.loop.Step(), frames: len(s.result.frames), point: ResumePoint{Deliveries: s.result.made, Loop: loop}})
	// All but the newest that is far enough back are of no use any more.
	if useful := p.usable(s.loop.Step()); useful > 0 {
		p.all = slices.Delete(p.all, 0, useful)
	}
}

// usable is the place of the newest resume point that is far enough before a superstep; -1 for none.
func (p *resumePoints) usable(step int) int {
	for i, one := range slices.Backward(p.all) {
		if step-one.step >= p.before {
			return i
		}
	}
	return -1
}

// chosen is the resume point of a segment that ends here; nil for none.
func (p *resumePoints) chosen(step int) *madePoint {
	if i := p.usable(step); i >= 0 {
		return &p.all[i]
	}
	return nil
}
