package pregel

import "slices"

// An update of the state from outside drops the tasks that were about to run, and with them what they asked. When the
// same task asks again after the update, it is the same question to whoever was asked: an answer that was given meanwhile
// counts. LangGraph gives such an answer to whoever asks first; here it is for the question that was open.

// droppedQuestion is a question that an update dropped.
type droppedQuestion struct {
	// Path are the paths of the tasks that led to it, from the graph that was updated; the last is the one that asked.
	Path     []string `json:"path"`
	Question Question `json:"question"`
}

// earlyAnswer answers a question that is to be asked again, in the superstep after its record.
type earlyAnswer struct {
	Path   []string `json:"path"`
	Answer Answer   `json:"answer"`
}

// Early reports whether the answer was given before its question was asked again: it has no QuestionID, and is for the
// task's question of its Key, or without one for the question of its Ordinal.
func (a Answer) Early() bool { return a.QuestionID == "" }

// For reports whether an early answer is for that question. An approval or an event has a way of its own.
func (a Answer) For(q *Question) bool {
	return a.Early() && q.correctable() && a.Key == q.Key && (q.Key != "" || a.Ordinal == q.Ordinal)
}

// dropped are the open questions of a record's tasks that people can answer, and those dropped before that nobody asked
// again.
func (p *Program) dropped(t *Thread, r *Record, nodes, path []string) []droppedQuestion {
	if r == nil {
		return nil
	}
	out := slices.Clone(r.dropped)
	for i := range out {
		out[i].Path = slices.Concat(path, out[i].Path)
	}
	for _, e := range r.tasks.sorted() {
		if e.rec.Done || e.rec.Handled {
			continue
		}
		at := slices.Concat(path, []string{e.path})
		if sub, child := p.childOf(t, e.rec, nodes); sub != nil && child != nil {
			out = append(out, sub.dropped(t, child, slices.Concat(nodes, []string{e.rec.Node}), at)...)
			continue
		}
		for _, q := range e.rec.open() {
			if q.correctable() {
				out = append(out, droppedQuestion{Path: at, Question: q})
			}
		}
	}
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
	p.eachRecord(t, t.Head, nil, func(r *Record) {
		for _, d := range r.dropped {
			if id == "" || d.Question.ID == id {
				all = append(all, found{r, d})
			}
		}
	})
	if len(all) != 1 {
		return false
	}
	a.QuestionID, a.Key, a.Ordinal = "", all[0].Question.Key, all[0].Question.Ordinal
	r := all[0].in
	r.early = append(slices.DeleteFunc(slices.Clone(r.early), func(e earlyAnswer) bool {
		return slices.Equal(e.Path, all[0].Path) && e.Answer.For(&all[0].Question)
	}), earlyAnswer{Path: all[0].Path, Answer: a})
	return true
}

// eachRecord visits a record and those of the subgraphs under way in its unfinished tasks.
func (p *Program) eachRecord(t *Thread, r *Record, nodes []string, visit func(*Record)) {
	visit(r)
	for _, e := range r.tasks.sorted() {
		if e.rec.Done || e.rec.Handled {
			continue
		}
		if sub, child := p.childOf(t, e.rec, nodes); sub != nil && child != nil {
			sub.eachRecord(t, child, slices.Concat(nodes, []string{e.rec.Node}), visit)
		}
	}
}

// takeEarly gives a task the answers that were given before it asks. What it asks from now on is asked, not dropped.
func (l *Loop) takeEarly(tr *taskRun) {
	path := []string{tr.task.Path}
	for at := l; at != nil; at = at.outer {
		if len(at.rec.dropped) > 0 {
			at.rec.dropped = slices.DeleteFunc(slices.Clone(at.rec.dropped), func(d droppedQuestion) bool { return slices.Equal(d.Path, path) })
		}
		for i := 0; i < len(at.rec.early); {
			e := at.rec.early[i]
			if !slices.Equal(e.Path, path) {
				i++
				continue
			}
			tr.rec.Answers = append(tr.rec.Answers[:len(tr.rec.Answers):len(tr.rec.Answers)], e.Answer)
			at.rec.early = slices.Delete(slices.Clone(at.rec.early), i, i+1)
		}
		if at.within != nil {
			path = slices.Concat([]string{at.within.task.Path}, path)
		}
	}
}
