package pregel

import "slices"

// Answer puts answers on record without running anything: the next run finds them. A scalar that
// several tasks wait for is a *MultipleInterruptsError; unknown ids answer nothing.
func (p *Program) Answer(t *Thread, r *Resume) error {
	if t.Head == nil {
		return nil
	}
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
		if rec.over() {
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
	if a.Early() || t.answerBudget(a) || p.answerDropped(t, a.QuestionID, a) {
		return
	}
	p.eachTask(t, t.Head, nil, func(_ int, rec *TaskRecord) bool {
		for _, q := range rec.open() {
			if q.ID == a.QuestionID {
				rec.Answers = append(slices.Clip(rec.Answers), a)
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
			rec.Answers = append(slices.Clip(rec.Answers), Answer{QuestionID: q.ID, Value: value, By: by})
		}
		return true
	})
}

// An update of the state from outside drops the tasks that were about to run, and with them what they asked. When the
// same task asks again after the update, it is the same question to whoever was asked: an answer that was given meanwhile
// counts. LangGraph gives such an answer to whoever asks first; here it is for the question that was open.

// dropped are the open questions of a record's tasks that people can answer, and those dropped before that nobody asked
// again.
func (p *Program) dropped(t *Thread, r *Record, nodes []string) []droppedQuestion {
	if r == nil {
		return nil
	}
	out := slices.Clone(r.dropped)
	p.walk(t, visit{in: r, nodes: nodes}, func(at visit) bool {
		switch {
		case at.rec.over():
		case at.inner != nil:
			for _, d := range at.inner.dropped {
				out = append(out, droppedQuestion{Path: slices.Concat(at.taskPath(), d.Path), Question: d.Question})
			}
		default:
			for _, q := range at.rec.open() {
				if q.correctable() {
					out = append(out, droppedQuestion{Path: at.taskPath(), Question: q})
				}
			}
		}
		return true
	})
	return out
}

// answerDropped answers a question that an update dropped: the one of that id, or with none the only one there is. It
// reports whether there was one.
func (p *Program) answerDropped(t *Thread, id string, a Answer) bool {
	type found struct {
		in *Record
		droppedQuestion
	}
	var all []found
	look := func(r *Record) {
		for _, d := range r.dropped {
			if id == "" || d.Question.ID == id {
				all = append(all, found{r, d})
			}
		}
	}
	look(t.Head)
	p.walk(t, visit{in: t.Head}, func(at visit) bool {
		if at.inner != nil && !at.rec.over() {
			look(at.inner)
		}
		return true
	})
	if len(all) != 1 {
		return false
	}
	a.QuestionID, a.About = "", all[0].Question.About
	r := all[0].in
	r.early = append(slices.DeleteFunc(slices.Clone(r.early), func(e earlyAnswer) bool {
		return slices.Equal(e.Path, all[0].Path) && e.Answer.For(&all[0].Question)
	}), earlyAnswer{Path: all[0].Path, Answer: a})
	return true
}

// Resume gives answers to a run whose superstep is still under way: the tasks that asked run again at once, beside
// siblings that have not ended. Where the run has ended, Start continues it instead. Ids that no open question has
// answer nothing.
func (l *Loop) Resume(r *Resume) error {
	if l.status != StatusRunning {
		return nil
	}
	if err := l.prog.Answer(l.thread, r); err != nil {
		return err
	}
	l.reopen()
	return nil
}

// reopen runs the waiting tasks again that got an answer.
func (l *Loop) reopen() {
	for _, tr := range l.tasks {
		switch {
		case tr.child != nil:
			tr.child.reopen()
		case tr.ended && tr.err == nil && tr.parent == nil && l.prog.hasNews(l.thread, tr.rec, l.nodes):
			tr.ended, tr.stopped = false, false
			l.open++
			if l.prog.nodes[tr.task.node].sub != nil {
				l.continueChild(tr)
				continue
			}
			l.handAgain(tr)
		}
	}
}
