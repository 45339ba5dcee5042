package activities

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/stackroom"
)

// The times of a segment's opening.
const (
	// openingTime is how long a segment stays within the workflow task: well below the heartbeat interval, so a lost worker
	// costs no more than it does in an activity.
	openingTime = 500 * time.Millisecond
	// takenWithin is how long an opened segment waits for its activity to begin on this worker. Another worker has it then.
	takenWithin = 5 * time.Second
)

// How many bytes a workflow task completes with as the result of an opening. The activity returns what has more.
const (
	maxOpened            = 1 << 20 // there is more in that message
	maxOpenedByReference = 4 << 20 // goes by reference, but is stored before the workflow task completes
)

// mostOpened is how many bytes a segment's opening may return.
func (n *Nodes) mostOpened() int {
	if n.returnsReferences() {
		return maxOpenedByReference
	}
	return maxOpened
}

// Open is the local activity in which a segment begins: see [segment.Opening]. It returns nothing when the segment is to go on
// in its activity, and never an error: whatever is wrong is the activity's to say.
func (n *Nodes) Open(ctx context.Context, req segment.Opening) ([]byte, error) {
	stackroom.Grow()
	graph := n.byName[req.Request.Graph]
	if req.Again || graph == nil || !n.openings.enter() {
		return nil, nil
	}
	defer n.openings.leave()
	if err := req.Request.Serves(graph); err != nil {
		return nil, nil
	}
	running, err := req.Open(graph)
	if err != nil {
		return nil, nil
	}
	o := n.newOpening(ctx, running, &req)
	o.strict = !graphadapter.IsRelaxed(req.Request.Durability)
	go o.run(&req.Request)
	timer := time.NewTimer(openingTime)
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	case <-o.acts:
	case <-ctx.Done():
	case <-activity.GetWorkerStopChannel(ctx):
	}
	if encoded := o.whole(); encoded != nil && len(encoded) <= n.mostOpened() {
		n.openings.drop(o)
		o.ends.say()
		return encoded, nil
	}
	close(o.over)
	time.AfterFunc(takenWithin, o.abandon)
	return nil, nil
}

// opening is a segment that began in a local activity. While that lasts, nothing of it is stored and nothing in it acts
// outside. Then its tasks go on, but no superstep and no call begins until the segment's activity has taken it over.
type opening struct {
	*exit
	nodes   *Nodes
	of      openingID
	info    activity.Info
	at      time.Time // the server's time when it began, and began what the clock of this process showed then
	began   time.Time
	running *segment.Segment
	strict  bool // what is to be kept is stored, by the segment's activity, before anything follows
	ctx     context.Context
	end     context.CancelCauseFunc

	acts  chan struct{} // closed when a task is about to act outside, or has emitted something that readers wait for
	act   sync.Once
	over  chan struct{} // closed when the local activity ended without the result
	taken chan struct{} // closed when owner is set
	owner owner
	done  chan struct{} // closed when result and err are set

	result segment.Result
	err    error
	// ends are those of its tasks, which are said once the outcomes are on their way to the history, or an activity has them.
	ends ends
}

// owner is the execution of an activity that has taken a segment over.
type owner interface {
	taskrun.Lease
	keep(ctx context.Context) error
	Now() time.Time
}

// newOpening is the opening of a segment. Its context has the values of the local activity's, and outlasts that.
func (n *Nodes) newOpening(ctx context.Context, running *segment.Segment, req *segment.Opening) *opening {
	info := activity.GetInfo(ctx)
	o := &opening{exit: newExit(), nodes: n, of: openingOf(info, req.ActivityID), info: info, at: req.At, began: time.Now(), running: running,
		acts: make(chan struct{}), over: make(chan struct{}), taken: make(chan struct{}), done: make(chan struct{})}
	o.ctx, o.end = context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), outputsKey{}, n.outputsOf(info.Namespace)))
	n.openings.put(o)
	return o
}

// run runs the supersteps.
func (o *opening) run(req *segment.Request) {
	defer close(o.done)
	defer o.end(nil)
	values := o.nodes.decoded.ofThread(o.info.WorkflowExecution.ID)
	o.running.KeepDecoded(values)
	defer func() { o.nodes.decoded.keep(o.info.WorkflowExecution.ID, values) }()
	t := &taskEnv{nodes: o.nodes, ctx: o.ctx, info: o.info, graph: req.Graph, thread: req.Thread, lease: o,
		trace: req.Trace, activity: o.of.activity, number: 1}
	o.result, o.err = o.running.Run(o.ctx, segment.Host{
		Keep: o.keep, Begin: o.begin, Leave: o.leave, Prepare: t.prepare, Refuse: refuser(req, o.running, 0), Now: o.now, Over: t.over,
		MostBytes: t.nodes.mostReturned(),
	})
}

// whole is the result of a segment that is through; nil when the activity is to return it.
func (o *opening) whole() []byte {
	select {
	case <-o.done:
	default:
		return nil
	}
	if o.err != nil {
		return nil
	}
	o.result.Follows = o.nodes.openings.follows != nil && o.nodes.openings.follows()
	encoded, err := o.result.Encode()
	if err != nil {
		return nil
	}
	return encoded
}

// abandon ends a segment that its activity did not take over: another worker runs it from its beginning.
func (o *opening) abandon() {
	if o.nodes.openings.drop(o) {
		o.end(graphadapter.ErrFenced)
	}
}

// keep is called before a superstep, and where a task has something to be stored.
func (o *opening) keep(ctx context.Context) error {
	select {
	case <-o.over:
	default:
		if !o.strict {
			return nil
		}
		o.act.Do(func() { close(o.acts) })
	}
	owner, err := o.await(ctx)
	if err != nil {
		return err
	}
	return owner.keep(ctx)
}

// begin is called before a task acts outside.
func (o *opening) begin(ctx context.Context) error {
	o.act.Do(func() { close(o.acts) })
	_, err := o.await(ctx)
	return err
}

// emitting ends the local activity with the first emission: readers are shown nothing of a task before the history tells of it.
func (o *opening) emitting(emit func(pregel.Emission)) func(pregel.Emission) {
	return func(e pregel.Emission) {
		o.act.Do(func() { close(o.acts) })
		emit(e)
	}
}

// await returns the activity that has taken the segment over.
func (o *opening) await(ctx context.Context) (owner, error) {
	select {
	case <-o.taken:
		return o.owner, nil
	default:
	}
	select {
	case <-o.taken:
		return o.owner, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// now is the clock of tasks' next attempts: the server's, as far as this process knows.
func (o *opening) now() time.Time {
	select {
	case <-o.taken:
		return o.owner.Now()
	default:
		return o.at.Add(time.Since(o.began))
	}
}

// Held implements taskrun.Lease.
func (o *opening) Held() error {
	select {
	case <-o.taken:
		return o.owner.Held()
	default:
		return graphadapter.ErrFenced // nothing may be called yet
	}
}

// Confirm implements taskrun.Lease.
func (o *opening) Confirm(ctx context.Context) error {
	owner, err := o.await(ctx)
	if err != nil {
		return err
	}
	return owner.Confirm(ctx)
}

// goOn makes an activity the owner of the segment, and waits for the segment's end. held ends when the activity is not this
// execution's any more.
func (o *opening) goOn(held context.Context, by owner) (segment.Result, error) {
	o.owner = by
	close(o.taken)
	o.ends.say()
	defer context.AfterFunc(held, func() { o.end(context.Cause(held)) })()
	<-o.done
	return o.result, o.err
}

// openingID names a segment's opening in this process.
type openingID struct{ namespace, run, activity string }

func openingOf(info activity.Info, activityID string) openingID {
	return openingID{info.Namespace, info.WorkflowExecution.RunID, activityID}
}

// openings are the segments that were opened in this process and that no activity has taken over yet. It is safe for
// concurrent use.
type openings struct {
	most    int         // executions in the worker at once for a segment to be opened beside them; 0 for any, -1 opens none
	follows func() bool // see [segment.Result]; nil for never

	mu   sync.Mutex
	of   map[openingID]*opening
	busy int // executions of nodes, in activities and in openings
}

// enter counts an opening that begins, unless the worker has no room for one.
func (s *openings) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most != 0 && s.busy >= s.most {
		return false
	}
	s.busy++
	return true
}

// during counts an activity until the returned function is called: the server gives a worker no more of them than it has
// room for.
func (s *openings) during() (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	return s.leave
}

// leave counts one less.
func (s *openings) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
}

// put adds an opening. It ends one of the same segment: the server has given its workflow task away, perhaps to this worker.
func (s *openings) put(o *opening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[openingID]*opening{}
	}
	if before := s.of[o.of]; before != nil {
		before.end(graphadapter.ErrFenced)
	}
	s.of[o.of] = o
}

// drop removes an opening that no activity will take over any more. It reports false when one has, or another opening of the
// segment has taken its place.
func (s *openings) drop(o *opening) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[o.of] != o {
		return false
	}
	delete(s.of, o.of)
	return true
}

// take removes an opening, and returns it; nil when there is none of that name.
func (s *openings) take(id openingID) *opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of[id]
	delete(s.of, id)
	return o
}

// taskEnv is what the tasks of a segment find in this worker.
type taskEnv struct {
	nodes           *Nodes
	ctx             context.Context
	info            activity.Info
	graph, thread   string
	lease           taskrun.Lease
	repeated, reset bool
	trace           string   // the request's
	activity        string   // the segment's, by its id
	number          int32    // its attempt; what an opening began, the first goes on with
	begins          []string // keys of the tasks with which an execution behind a lost one begins
	emits           sync.Map // *publisher by *pregel.Task, of the tasks under way
}

// prepare completes the environment of a task's execution.
func (w *taskEnv) prepare(t *pregel.Task, env *taskrun.Env) {
	env.Use, env.Lease = w.nodes.use(), w.lease
	env.Warn = func(err error) { activity.GetLogger(w.ctx).Warn("the task goes on without", "error", err) }
	env.Lost = env.Lost || env.Suspect && w.reset
	env.Duplicate = duplicates(w.ctx, w.graph)
	env.Tracer = w.traced(t, env).env()
	if p := w.nodes.publisher(w.ctx, w.info, w.thread, t); p != nil {
		env.Emit = p.emit()
		if o, ok := w.lease.(*opening); ok {
			env.Emit = o.emitting(env.Emit)
		}
		w.emits.Store(t, p)
	}
}

// traced is what tells of a task; nil when nobody traces it.
func (w *taskEnv) traced(t *pregel.Task, env *taskrun.Env) *traced {
	of := w.nodes.tracerOf(w.trace, t, w.graph, w.thread)
	if of == nil {
		return nil
	}
	if of.of = ofSegment(w.info, w.activity, w.number); slices.Contains(w.begins, t.Key()) {
		of.under = true
		if lost, ok := w.lease.(*segmentRun); ok {
			of.tellLost(lost.lease, env.Outbox.Attempt())
		}
	}
	return of
}

// over says that a task has ended, and that the segment has its outcome. Nothing comes of the outcomes of an execution that has lost its
// lease: the task runs again, and what it emits then is kept for readers. Of an opening it is said when the opening returns its result, or
// when its activity has taken it over.
func (w *taskEnv) over(t *pregel.Task) {
	p, ok := w.emits.LoadAndDelete(t)
	if !ok {
		return
	}
	say := func(ctx context.Context) { p.(*publisher).ended(ctx, w.repeated) }
	if o, opens := w.lease.(*opening); opens && o.ends.keep(say) {
		return
	}
	if w.lease.Held() == nil {
		say(context.WithoutCancel(w.ctx))
	}
}

// refuser asks a person about the tasks that were under way when too many workers in a row were lost, and ends those
// that a person has given up.
func refuser(req *segment.Request, running *segment.Segment, counted int) func(*pregel.Task) *pregel.Outcome {
	begins := running.Begins()
	return func(t *pregel.Task) *pregel.Outcome {
		lost := 0
		if slices.Contains(begins, t.Key()) {
			lost = counted
		}
		question, answer := lostTask{t, req.Thread, lost, running.Suspects(t)}.ask()
		switch {
		case question != nil:
			return &pregel.Outcome{Questions: []pregel.Question{*question}}
		case answer == givenUp:
			return &pregel.Outcome{Error: lostFor(req.Graph, t.Node)}
		}
		return nil
	}
}
