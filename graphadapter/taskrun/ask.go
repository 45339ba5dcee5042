package taskrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// MaxQuestionBytes bounds a question: what is asked, the schema of its answer and the action that it asks to approve, all as
// JSON. A reply of the server takes 2 MiB, and a run's last event keeps 1,600 KiB of the thread's state with its questions:
// one that is larger could be asked, and neither shown nor kept.
const MaxQuestionBytes = 1536 << 10

// QuestionTooLargeError says that a node asks more than anybody could be shown. The question is not asked.
type QuestionTooLargeError struct {
	Graph, Node, Thread string
	// Bytes is the question's size, of the MaxQuestionBytes that it may have.
	Bytes int
}

func (e *QuestionTooLargeError) Error() string {
	return fmt.Sprintf("node %q of graph %q, thread %q, asks a question of %d bytes, at most %d can be shown: keep the large value "+
		"outside and ask with a reference to it", e.Node, e.Graph, e.Thread, e.Bytes, MaxQuestionBytes)
}

// Permanent says that asking again is no use.
func (e *QuestionTooLargeError) Permanent() bool { return true }

// ErrorType names the kind of failure in stored data.
func (e *QuestionTooLargeError) ErrorType() string { return "QuestionTooLarge" }

// Ask returns the answer to a question; see [TaskRun.AskFor]. schema is the JSON schema of the answer, nil for any.
func (t *TaskRun) Ask(ctx context.Context, value, schema pregel.Value, key string) (pregel.Value, error) {
	answer, err := t.AskFor(ctx, pregel.Question{Key: key, Value: value, Schema: schema})
	return answer.Value, err
}

// AskFor returns the answer to a question, of which it sets ID and Ordinal. While there is none it records the
// question, once, and returns [ErrInterrupted]; the task then waits, and runs again from its start when an answer came.
// A person's answer that does not have the question's schema is set aside, and the question is asked again under an id of
// its own: the answer was given to an earlier version of the node, which asked for something else. What an event brought
// that does not have the schema is an [*AnswerError].
//
// A question is known by what is asked, its value and schema, and within that by its key, or without one by its ordinal among the equal
// questions of its scope. A wait is known by its event in the same way. So a node may ask in another order when it runs again, and what it
// did not ask before is asked, whatever was answered in its place.
func (t *TaskRun) AskFor(ctx context.Context, q pregel.Question) (pregel.Answer, error) {
	if ctx.Err() != nil {
		return pregel.Answer{}, context.Cause(ctx)
	}
	var err error
	if q.Approval == nil { // what an approval asks is made here
		q.Value, err = jsontext.Compact(q.Value)
	}
	if err != nil {
		return pregel.Answer{}, fmt.Errorf("node %q of graph %q, thread %q, asks something that is not JSON: %w",
			t.info.Node, t.info.Graph, t.info.Thread, err)
	}
	if size := len(q.Value) + len(q.Schema) + len(q.Approval); size > MaxQuestionBytes {
		return pregel.Answer{}, &QuestionTooLargeError{Graph: t.info.Graph, Node: t.info.Node, Thread: t.info.Thread, Bytes: size}
	}
	if q.About == "" {
		if err := identify(t, &q); err != nil {
			return pregel.Answer{}, err
		}
	}
	q.ID = t.questionID(&q)
	for t.isSetAside(q) {
		q.ID = "q-" + t.hash("question", "again", q.ID)[:8]
	}
	answer, err := t.ask(q)
	if err != nil {
		for scope := t; scope != nil; scope = scope.parent {
			scope.asked.Store(true)
		}
		return pregel.Answer{}, err
	}
	if answer.TimedOut && q.Event == "" && q.Default == nil {
		return pregel.Answer{}, &graphadapter.AnswerTimeoutError{Graph: t.info.Graph, Node: t.info.Node, Thread: t.info.Thread,
			Question: q.ID, Timeout: time.Duration(q.Timeout) * time.Millisecond}
	}
	if answer.TimedOut && q.Event != "" {
		return pregel.Answer{}, &graphadapter.EventTimeoutError{Graph: t.info.Graph, Node: t.info.Node, Thread: t.info.Thread,
			Event: q.Event, Timeout: time.Duration(q.Timeout) * time.Millisecond}
	}
	if q.Approval != nil {
		return answer, nil // its schema is that of a reply, and this is what came of the replies
	}
	return answer, t.checkAnswer(q.For(answer.Event), answer)
}

// questionID is short, because people type it; it has to be unique only among the questions of one thread.
func (t *TaskRun) questionID(q *pregel.Question) string {
	place := t.info
	if t.task.Asked != nil && q.Approval == nil && q.Event == "" { // nobody approves, or tells of an event, for another line
		place.Branch = *t.task.Asked
	}
	if t.task.AskedIn != "" && q.Approval == nil {
		place.Thread = t.task.AskedIn
	}
	return place.questionID(q.About)
}

// identify sets what tells a question apart from all others of its task.
func identify(t *TaskRun, q *pregel.Question) error {
	about, err := aboutQuestion(q)
	if err != nil {
		return graphadapter.Permanent(fmt.Errorf("node %q of graph %q, thread %q, asks something that has no canonical form: %w", t.info.Node,
			t.info.Graph, t.info.Thread, err))
	}
	if q.Key != "" {
		q.About = ledger.Hash("key", q.Key, about)[:ledger.KeyLength]
		return nil
	}
	q.About = ledger.Hash("ordinal", t.scope, about, t.next("question", about))[:ledger.KeyLength]
	return nil
}

// aboutQuestion names what is asked, wherever it is asked: the event that is waited for, or the question and the schema of its answer.
func aboutQuestion(q *pregel.Question) (string, error) {
	if q.Event != "" {
		return ledger.Hash("event", q.Event), nil
	}
	value, err := graphadapter.ParamsHash(jsontext.OrNull(q.Value))
	if err != nil {
		return "", err
	}
	schema, err := graphadapter.ParamsHash(jsontext.OrNull(q.Schema))
	return ledger.Hash("question", value, schema), err
}

// aboutKey is the About of a question that the task asks by itself: its key says what it is about, and its words may change.
func aboutKey(key string) string { return ledger.Hash("own", key)[:ledger.KeyLength] }

// questionID is that of the task's question that is about that.
func (i *Info) questionID(about string) string { return "q-" + i.hash("question", about)[:8] }

func (a *attempt) ask(q pregel.Question) (pregel.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return pregel.Answer{}, graphadapter.ErrFenced
	}
	ordinal, before := a.ordinals[q.ID]
	if !before {
		ordinal = len(a.ordinals)
		if a.ordinals == nil {
			a.ordinals = map[string]int{}
		}
		a.ordinals[q.ID] = ordinal
	}
	q.Ordinal = ordinal
	answer, ok := a.answerTo(q)
	if !ok {
		answer, ok = a.earlyAnswer(&q)
	}
	if ok {
		answer.Value = jsontext.OrNull(answer.Value)
		return answer, nil
	}
	if !before {
		a.questions = append(a.questions, q)
	}
	return pregel.Answer{}, graphadapter.ErrInterrupted
}

// earlyAnswer is the answer that was given before the question was asked again. One that the question does not take answers
// nothing: the question is asked.
func (a *attempt) earlyAnswer(q *pregel.Question) (pregel.Answer, bool) {
	for _, answer := range a.early {
		if answer.For(q) && graphadapter.CheckAnswer(*q, jsontext.OrNull(answer.Value)) == nil {
			answer.QuestionID = q.ID
			return answer, true
		}
	}
	return pregel.Answer{}, false
}

// isSetAside reports whether the answer on record to a person's question does not have the schema that the question has
// now.
func (a *attempt) isSetAside(q pregel.Question) bool {
	answer, ok := a.answers[q.ID]
	return ok && q.Event == "" && q.Approval == nil && !answer.TimedOut && a.checkAnswer(q, answer) != nil
}

// checkAnswer holds an answer to its question's schema once more: not every way in may have done so.
func (a *attempt) checkAnswer(q pregel.Question, answer pregel.Answer) error {
	err := graphadapter.CheckAnswer(q, answer.Value)
	var wrong *graphadapter.AnswerError
	if errors.As(err, &wrong) {
		wrong.Graph, wrong.Node, wrong.Thread = a.info.Graph, a.info.Node, a.info.Thread
	}
	return err
}

// answerTo returns the answer to a question; a.mu is held.
func (a *attempt) answerTo(q pregel.Question) (pregel.Answer, bool) {
	if answer, ok := a.answers[q.ID]; ok || a.env.Asked == nil {
		return answer, ok
	}
	value, ok := a.env.Asked(q)
	return pregel.Answer{QuestionID: q.ID, Value: value}, ok
}

// Emit puts a value on the custom stream: at once if somebody listens, and in any case into the task's outcome. Beyond
// [MaxEmitted], [MaxEmittedValue] or [MaxEmittedTotal] it returns an [*EmitLimitError]. Emitting is progress.
func (t *TaskRun) Emit(v pregel.Value) error { return t.emit(pregel.EmissionCustom, v) }

// EmitMessage is Emit for the messages stream: v is a message, or a piece of one that has the id of the whole. Both
// kinds share the bounds.
func (t *TaskRun) EmitMessage(v pregel.Value) error { return t.emit(pregel.EmissionMessage, v) }

func (t *TaskRun) emit(kind pregel.EmissionKind, v pregel.Value) error {
	v, err := jsontext.Compact(v)
	if err != nil {
		return fmt.Errorf("node %q of graph %q emits something that is not JSON: %w", t.info.Node, t.info.Graph, err)
	}
	if t.isClosed() {
		return graphadapter.ErrFenced
	}
	if t.outer != nil {
		t.idle.progress()
		return t.outer.emit(kind, v)
	}
	e := pregel.Emission{Kind: kind, Value: v}
	t.emitting.Lock()
	defer t.emitting.Unlock()
	if err := t.keep(e); err != nil {
		return err
	}
	t.idle.progress()
	t.tell(e)
	return nil
}

func (a *attempt) tell(e pregel.Emission) {
	if a.env.Emit != nil {
		a.env.Emit(e)
	}
}

func (a *attempt) keep(e pregel.Emission) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit := func(what string, n int) error {
		return &graphadapter.EmitLimitError{Graph: a.info.Graph, Node: a.info.Node, What: what, Limit: n}
	}
	switch {
	case a.closed:
		return graphadapter.ErrFenced
	case len(e.Value) > MaxEmittedValue:
		return limit("bytes in one emitted value", MaxEmittedValue)
	case a.emittedCount == MaxEmitted:
		return limit("emitted values in one attempt", MaxEmitted)
	case a.emittedBytes+len(e.Value) > MaxEmittedTotal:
		return limit("emitted bytes in one attempt", MaxEmittedTotal)
	}
	a.emitted = append(a.emitted, e)
	a.emittedCount++
	a.emittedBytes += len(e.Value)
	return nil
}

// reset begins what a repeated attempt emits, or one that was given back: what went before is void. A graph called from a node's
// code has no word in that; its node's own attempts do.
func (a *attempt) reset() {
	if a.info.Attempt == 1 && !a.between.Begun || a.outer != nil {
		return
	}
	e := pregel.Emission{Kind: pregel.EmissionReset, Attempt: a.info.Attempt}
	a.emitted = append(a.emitted, e)
	a.tell(e)
}
