package workflows

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/tracing"
	"superstep.dev/workflows/protocol"
)

// Spans tells of what runs do: a *tracing.Tracer is one. Its methods must not block.
type Spans interface {
	// Of is a run's place in a trace, that of who asked for it if a message carried one; the zero Trace when nobody traces it.
	Of(r tracing.RunID, carried string) tracing.Trace
	// Tell tells of a span that has ended.
	Tell(s tracing.Span)
}

// traced tells of a run's supersteps, tasks and questions, and of the run itself, when they have ended: not while the run is
// replayed. What began when follows from the history, so whichever worker has the run at the end knows it. No decision follows
// from anything here. A nil traced tells nothing.
type traced struct {
	spans  Spans
	place  tracing.Trace
	graph  string
	thread string
	run    string // the first of those that continue each other
	since  time.Time
	// carried is the span of who asked for the run, and from those of who told it to go on.
	carried string
	from    []string
	steps   map[string]*openStep // by namespace
	asked   map[string]*openSpan // questions by id
	given   map[string]string    // spans of who answered, by question
	// within is when a task of a segment was under way, whose outcome is being delivered.
	within *moments
}

// openSpan is what began and has not ended.
type openSpan struct {
	began      time.Time
	id, parent trace.SpanID
	name       string
	attributes []attribute.KeyValue
	// failed is the type of the error that it would end with, ended when.
	failed string
	ended  time.Time
	is     protocol.UnderWay // what it is of
}

// openStep is a superstep that has not ended, with its tasks by their keys. A task that was told of is nil.
type openStep struct {
	openSpan
	number int
	branch string
	tasks  map[string]*openSpan
}

type moments struct{ began, ended time.Time }

// maxFrom bounds the spans that a run is linked to.
const maxFrom = 32

// newTraced tells of a run at that place; nil of a run that nobody traces.
func newTraced(spans Spans, id tracing.RunID, in *protocol.GraphInput, since time.Time) *traced {
	if spans == nil {
		return nil
	}
	place := spans.Of(id, in.Trace)
	if !place.On() {
		return nil
	}
	t := &traced{spans: spans, place: place, graph: in.Graph, thread: id.Thread, run: id.First, since: since,
		carried: in.Trace, steps: map[string]*openStep{}, asked: map[string]*openSpan{}, given: map[string]string{}}
	t.goesOn(in.TraceBefore)
	return t
}

// String is the run's place as activities are told of it.
func (t *traced) String() string {
	if t == nil {
		return ""
	}
	return t.place.String()
}

// tells reports whether anybody wants spans of the run.
func (t *traced) tells() bool { return t != nil && t.place.Sampled() }

// delivers says that the outcome of a task of a segment is about to be delivered; nil that of no such task.
func (t *traced) delivers(d *segment.Delivery) {
	if !t.tells() {
		return
	}
	if t.within = nil; d != nil && d.Outcome.Timed != nil {
		began := time.UnixMicro(d.Outcome.Timed.Began)
		t.within = &moments{began, began.Add(time.Duration(d.Outcome.Timed.Took) * time.Microsecond)}
	}
}

func (t *traced) now(ctx workflow.Context) time.Time {
	if t.within != nil {
		return t.within.ended
	}
	return workflow.Now(ctx)
}

// happened takes in an event of the engine.
func (t *traced) happened(ctx workflow.Context, e pregel.Event) {
	if !t.tells() {
		return
	}
	switch {
	case e.Kind == pregel.EventTaskStart:
		t.begins(ctx, e)
	case e.Kind == pregel.EventTaskEnd, e.Kind == pregel.EventUpdate && e.Cached:
		t.ends(ctx, e)
	case e.Kind == pregel.EventCheckpoint && e.Checkpoint.Checkpoint.Source == pregel.SourceLoop:
		t.closeStep(ctx, e.Namespace, "")
	}
}

// begins notes a task, with the first of them its superstep. A task that runs again, with an answer or after the run had failed, began
// when it did.
func (t *traced) begins(ctx workflow.Context, e pregel.Event) *openSpan {
	s := t.stepOf(ctx, e.Task)
	key := e.Task.Key()
	if known, ok := s.tasks[key]; ok {
		if known != nil {
			known.failed = ""
		}
		return known
	}
	return t.openTask(s, protocol.UnderWay{Namespace: e.Task.Namespace, Step: e.Task.Step, Task: key, Node: e.Task.Node, Began: t.now(ctx)})
}

// stepOf is the superstep of a task. One that the thread has left without an end, since its state was changed, ends there.
func (t *traced) stepOf(ctx workflow.Context, task *pregel.Task) *openStep {
	s := t.steps[task.Namespace]
	if s != nil && s.number == task.Step && s.branch == task.Branch {
		return s
	}
	if s != nil {
		t.closeStep(ctx, task.Namespace, "")
	}
	return t.openStep(protocol.UnderWay{Namespace: task.Namespace, Branch: task.Branch, Step: task.Step, Began: t.now(ctx)})
}

func (t *traced) openStep(of protocol.UnderWay) *openStep {
	s := &openStep{number: of.Step, branch: of.Branch, tasks: map[string]*openSpan{}, openSpan: openSpan{began: of.Began, is: of,
		id: t.place.Superstep(of.Namespace, of.Branch, of.Step), parent: t.above(of.Namespace), name: tracing.SuperstepName,
		attributes: t.attributes(tracing.StepKey.Int(of.Step))}}
	t.steps[of.Namespace] = s
	return s
}

func (t *traced) openTask(s *openStep, of protocol.UnderWay) *openSpan {
	task := &openSpan{began: of.Began, failed: of.Failed, ended: of.Ended, is: of, id: t.place.Task(of.Task), parent: s.id, name: tracing.TaskName,
		attributes: t.attributes(tracing.NodeKey.String(of.Node), tracing.TaskKey.String(of.Task), tracing.StepKey.Int(of.Step))}
	s.tasks[of.Task] = task
	return task
}

func (t *traced) openQuestion(of protocol.UnderWay) {
	t.asked[of.Question] = &openSpan{began: of.Began, is: of, id: t.place.Question(of.Question), parent: t.place.Task(of.Task),
		name: tracing.QuestionName, attributes: t.attributes(tracing.QuestionKey.String(of.Question), tracing.AboutKey.String(of.About))}
}

// mostHandedOn bounds what a run tells the one that continues it of what is under way: of the rest that one knows no beginning.
const mostHandedOn = 500

// handsOn is what is under way, for the run that continues this one.
func (t *traced) handsOn() (all []protocol.UnderWay) {
	if !t.tells() {
		return nil
	}
	add := func(s *openSpan) {
		if s != nil && len(all) < mostHandedOn {
			s.is.Failed, s.is.Ended = s.failed, s.ended
			all = append(all, s.is)
		}
	}
	for _, namespace := range workflow.DeterministicKeys(t.steps) { // before what is within
		s := t.steps[namespace]
		add(&s.openSpan)
		for _, key := range workflow.DeterministicKeys(s.tasks) {
			add(s.tasks[key])
		}
	}
	for _, id := range workflow.DeterministicKeys(t.asked) {
		add(t.asked[id])
	}
	return all
}

// goesOnWith takes over what the run before has handed on.
func (t *traced) goesOnWith(all []protocol.UnderWay) {
	if !t.tells() {
		return
	}
	for _, of := range all {
		switch s := t.steps[of.Namespace]; {
		case of.Question != "":
			t.openQuestion(of)
		case of.Task == "":
			t.openStep(of)
		case s != nil:
			t.openTask(s, of)
		}
	}
}

// ends takes in that a task has ended. One that asked goes on, and one that failed may.
func (t *traced) ends(ctx workflow.Context, e pregel.Event) {
	task := t.begins(ctx, e)
	if task == nil {
		return
	}
	task.ended = t.now(ctx)
	if t.within != nil {
		task.began = t.within.began
		if s := t.steps[e.Task.Namespace]; s.began.After(task.began) {
			s.began = task.began
		}
	}
	switch {
	case e.Error != nil:
		task.failed = e.Error.Type
	case len(e.Questions) > 0:
		for _, q := range e.Questions {
			t.asks(task, q)
		}
	default:
		t.tell(ctx, task)
		t.steps[e.Task.Namespace].tasks[e.Task.Key()] = nil
	}
}

// above is what a superstep of the graph with that namespace is part of: the run, or the task that the graph runs in.
func (t *traced) above(namespace string) trace.SpanID {
	if namespace == "" {
		return t.place.Run
	}
	outer := ""
	if at := strings.LastIndexByte(namespace, '|'); at >= 0 {
		outer = namespace[:at]
	}
	key := namespace // as pregel.Task.Key writes it
	if s := t.steps[outer]; s != nil && s.branch != "" {
		key = s.branch + "!" + namespace
	}
	return t.place.Task(key)
}

// closeStep tells of a superstep that has ended, and of the tasks of it that nobody was told of, with an error of that type if they had
// none of their own.
func (t *traced) closeStep(ctx workflow.Context, namespace, failed string) {
	s := t.steps[namespace]
	if s == nil {
		return
	}
	delete(t.steps, namespace)
	for _, key := range workflow.DeterministicKeys(s.tasks) {
		task := s.tasks[key]
		if task == nil {
			continue
		}
		task.failed = cmp.Or(task.failed, failed)
		if task.ended.IsZero() || task.failed == "" {
			task.ended = t.now(ctx)
		}
		s.failed = cmp.Or(s.failed, failed)
		t.tell(ctx, task)
	}
	s.ended = t.now(ctx)
	t.tell(ctx, &s.openSpan)
}

// asks notes a question.
func (t *traced) asks(task *openSpan, q pregel.Question) {
	if _, known := t.asked[q.ID]; known || q.ID == "" {
		return
	}
	about := aboutOf(q)
	if q.Event != "" {
		about = "event"
	}
	t.openQuestion(protocol.UnderWay{Question: q.ID, About: about, Task: task.is.Task, Began: task.ended})
}

// answers notes whose span it is that answers questions.
func (t *traced) answers(a life.Answer) {
	if !t.tells() || a.Trace == "" {
		return
	}
	named := a.All()
	if len(named) == 0 && len(t.asked) == 1 {
		named = []pregel.Answer{{QuestionID: workflow.DeterministicKeys(t.asked)[0]}}
	}
	for _, one := range named {
		if t.asked[one.QuestionID] != nil {
			t.given[one.QuestionID] = a.Trace
		}
	}
}

// noted tells of a question that an entry of the audit ends.
func (t *traced) noted(ctx workflow.Context, e approval.Entry) {
	if !t.tells() {
		return
	}
	switch e.Kind {
	case approval.KindAnswered, approval.KindExpired, approval.KindWithdrawn, approval.KindRuled:
		t.answered(ctx, e.Question, string(e.Kind), e.At)
	}
}

func (t *traced) answered(ctx workflow.Context, question, outcome string, at time.Time) {
	q := t.asked[question]
	if q == nil {
		return
	}
	delete(t.asked, question)
	q.ended = at
	q.attributes = append(q.attributes, tracing.OutcomeKey.String(outcome))
	t.tell(ctx, q, t.given[question])
	delete(t.given, question)
}

// goesOn links the run to the span of who told it to go on.
func (t *traced) goesOn(carried string) {
	if t.tells() && carried != "" && len(t.from) < maxFrom {
		t.from = append(t.from, carried)
	}
}

// ended tells of a run that has returned that error, and of all that ends with it.
func (t *traced) ended(ctx workflow.Context, err error) {
	if !t.tells() || workflow.IsContinueAsNewError(err) {
		return
	}
	t.within = nil
	outcome, failed := protocol.StatusFinished, ""
	var application *temporal.ApplicationError
	switch {
	case temporal.IsCanceledError(err):
		outcome, failed = protocol.StatusCancelled, pregel.CancelledType
	case errors.As(err, &application):
		outcome, failed = protocol.StatusFailed, application.Type()
	case err != nil:
		outcome, failed = protocol.StatusFailed, protocol.ErrTypeRunFailed
	}
	for _, question := range workflow.DeterministicKeys(t.asked) {
		t.answered(ctx, question, "open", workflow.Now(ctx))
	}
	namespaces := workflow.DeterministicKeys(t.steps)
	for _, namespace := range slices.Backward(namespaces) { // subgraphs first
		t.closeStep(ctx, namespace, failed)
	}
	run := openSpan{began: t.since, ended: workflow.Now(ctx), id: t.place.Run, name: tracing.RunName, failed: failed,
		attributes: t.attributes(tracing.RunKey.String(t.run), tracing.OutcomeKey.String(outcome))}
	t.tell(ctx, &run, t.from...)
}

func (t *traced) attributes(more ...attribute.KeyValue) []attribute.KeyValue {
	return append([]attribute.KeyValue{tracing.GraphKey.String(t.graph), tracing.ThreadKey.String(t.thread)}, more...)
}

// tell tells of a span that has ended, with links to others. What is replayed was told of.
func (t *traced) tell(ctx workflow.Context, s *openSpan, from ...string) {
	if workflow.IsReplaying(ctx) {
		return
	}
	told := tracing.Span{In: t.place, ID: s.id, Parent: s.parent, Name: s.name, Began: s.began, Ended: s.ended, Attributes: s.attributes,
		From: from, Failed: s.failed}
	if s.id == t.place.Run {
		told.Carried = t.carried
	}
	t.spans.Tell(told)
}

// aboutOf is what a question is about.
func aboutOf(q pregel.Question) string {
	switch {
	case q.Approval != nil:
		return "approval"
	case taskrun.IsDoubt(q):
		return "doubt"
	}
	return aboutQuestion
}

// aboutQuestion is what a question is about that is nothing else.
const aboutQuestion = "question"
