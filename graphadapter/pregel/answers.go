package pregel

import (
	"slices"
	"strings"
)

// Answer puts answers on record without running anything: the next run finds them. A scalar that
// several tasks wait for is a *MultipleInterruptsError; unknown ids answer nothing.
func (p *Program) Answer(t *Thread, r *Resume) error {
	if t.Head == nil {
		return nil
	}
	return p.answer(t, r)
}

func (p *Program) answer(t *Thread, r *Resume) error {
	if r.Scalar != nil {
		return p.answerScalar(t, r)
	}
	for _, id := range sortedKeys(r.ByID) {
		p.give(t, Answer{QuestionID: id, Value: r.ByID[id], By: r.By})
	}
	for _, a := range r.Answers {
		p.give(t, a)
	}
	return nil
}

// answerScalar gives a value to the first open question. Which one is meant is clear while the root's unfinished tasks
// list one question, answered or not, those within a subgraph counted each (LangGraph's rule). Runtimes are stricter. A
// wait for an event is no question for whoever gives a scalar.
func (p *Program) answerScalar(t *Thread, r *Resume) error {
	if err := p.ambiguous(t.Head); err != nil {
		return err
	}
	for _, q := range p.OpenQuestions(t) {
		if q.forPeople() {
			p.give(t, Answer{QuestionID: q.ID, Value: r.Scalar, By: r.By})
			return nil
		}
	}
	p.answerDropped(t, "", Answer{Value: r.Scalar, By: r.By})
	return nil
}

// ambiguous refuses an answer that does not say what it answers, when the unfinished tasks of a record list several
// questions.
func (p *Program) ambiguous(r *Record) error {
	var ids []string
	for _, e := range r.tasks.sorted() {
		rec := e.rec
		if rec.Done || rec.Handled {
			continue
		}
		for _, q := range rec.Questions {
			if q.forPeople() && !slices.Contains(ids, q.ID) {
				ids = append(ids, q.ID)
			}
		}
	}
	if len(ids) > 1 {
		return &MultipleInterruptsError{Graph: p.Spec.Name, IDs: ids}
	}
	return nil
}

// give puts an answer on the task that asked, or will ask again; an unknown id, or one already answered, answers nothing.
func (p *Program) give(t *Thread, a Answer) {
	if a.Early() || p.answerDropped(t, a.QuestionID, a) {
		return
	}
	p.eachTask(t, t.Head, nil, func(_ int, rec *TaskRecord) bool {
		for _, q := range rec.open() {
			if q.ID == a.QuestionID {
				rec.Answers = append(rec.Answers[:len(rec.Answers):len(rec.Answers)], a)
				return false
			}
		}
		return true
	})
}

// answerAgain answers at a checkpoint that the thread has passed. All of its tasks run again, finished ones too, on a line
// of their own, with the answers that they were given. An answer to a question that has one already takes its place: it
// corrects that one, and those that the task was given after it, which may have depended on it, go. A value that does not
// say what it answers is for the question that is open, else for the only one that is not.
func (p *Program) answerAgain(t *Thread, r *Resume) error {
	if r.Scalar == nil {
		t.Head = t.Head.again(t.newBranch())
		p.correct(t, r.ByID, r.By)
		for _, a := range r.Answers {
			p.correct(t, map[string]Value{a.QuestionID: a.Value}, a.By)
		}
		return nil
	}
	if err := p.ambiguous(t.Head); err != nil {
		return err
	}
	var open, closed []string
	for _, q := range p.OpenQuestions(t) {
		if q.correctable() {
			open = append(open, q.ID)
		}
	}
	again := t.Head.again(t.newBranch())
	for _, e := range again.tasks.sorted() {
		if sub, _ := p.childOf(t, e.rec, nil); sub != nil {
			continue
		}
		for _, q := range e.rec.Questions {
			if q.correctable() {
				closed = append(closed, q.ID)
			}
		}
	}
	t.Head = again
	switch {
	case len(open) > 0:
		p.correct(t, map[string]Value{open[0]: r.Scalar}, r.By)
	case len(closed) == 1:
		p.correct(t, map[string]Value{closed[0]: r.Scalar}, r.By)
	}
	return nil
}

// correctable reports whether an answer may come in another way than the question's own: an approval has its gate, and an
// event is sent.
func (q Question) correctable() bool { return q.forPeople() && q.Approval == nil }

// correct gives answers by their questions' ids, in the place of earlier ones.
func (p *Program) correct(t *Thread, byID map[string]Value, by string) {
	p.eachTask(t, t.Head, nil, func(_ int, rec *TaskRecord) bool {
		for _, q := range rec.Questions {
			value, given := byID[q.ID]
			if !given || !q.correctable() {
				continue
			}
			if at := slices.IndexFunc(rec.Answers, func(a Answer) bool { return a.QuestionID == q.ID }); at >= 0 {
				rec.Answers = rec.Answers[:at]
			}
			rec.Answers = append(rec.Answers[:len(rec.Answers):len(rec.Answers)], Answer{QuestionID: q.ID, Value: value, By: by})
		}
		return true
	})
}

// again is a record of which every task runs again, on another line, with what it has asked and was told.
func (r *Record) again(branch string) *Record {
	asked := r.branch()
	if r.asked != nil {
		asked = *r.asked
	}
	c := r.Bare()
	c.line, c.asked = &branch, &asked
	for _, e := range r.tasks.sorted() {
		if !strings.HasSuffix(e.path, handlerMark) {
			c.tasks.put(e.path, &TaskRecord{Node: e.rec.Node, Questions: e.rec.Questions, Answers: e.rec.Answers, child: e.rec.child})
		}
	}
	return c
}
