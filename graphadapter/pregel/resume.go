package pregel

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
			tr.ended, tr.held = false, false
			l.open++
			if l.prog.nodes[tr.task.node].sub != nil {
				l.continueChild(tr)
				continue
			}
			l.handAgain(tr)
		}
	}
}

// hasNews reports whether a task that waits has an answer that it has not seen: an answered question among those that
// it asked when it last ran.
func (p *Program) hasNews(t *Thread, rec *TaskRecord, nodes []string) bool {
	if rec.Done || rec.Handled {
		return false
	}
	if sub, child := p.childOf(t, rec, nodes); child != nil {
		news := false
		sub.eachTask(t, child, append(nodes[:len(nodes):len(nodes)], rec.Node), func(_ int, inner *TaskRecord) bool {
			news = inner.answeredOne()
			return !news
		})
		return news
	}
	return rec.answeredOne()
}

func (t *TaskRecord) answeredOne() bool {
	for _, q := range t.Questions {
		if answered(t.Answers, q.ID) {
			return true
		}
	}
	return false
}
