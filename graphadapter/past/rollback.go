package past

import (
	"errors"

	"superstep.dev/graphadapter/pregel"
)

// Rollback says which invocation of a thread is taken back.
type Rollback string

// The invocations that can be taken back; "" is none.
const (
	// RollbackNewest is the invocation that began last.
	RollbackNewest Rollback = "newest"
	// RollbackBehind is the one before it, for a run that only cleans up behind the invocation.
	RollbackBehind Rollback = "behind"
)

// mark is how a thread stood when an invocation began.
type mark struct {
	thread *pregel.Thread
	news   int // of the Effects then
}

// marked notes how the thread stands when an invocation begins.
func (e *Effects) marked(t *pregel.Thread) {
	e.marks = append(e.marks, mark{t.Copy(), e.news})
	e.marks = e.marks[max(0, len(e.marks)-2):]
}

// followed takes in the marks of the thread's next run. An invocation that began at an earlier checkpoint found the thread where the run
// before had left it.
func (e *Effects) followed(marks []mark, before int) {
	for i, m := range marks {
		if now := e.line.thread; i == 0 && now != nil && !sameHead(now, m.thread) {
			m.thread = now.Copy()
		}
		e.marks = append(e.marks, mark{m.thread, before + m.news})
	}
	e.marks = e.marks[max(0, len(e.marks)-2):]
}

func sameHead(a, b *pregel.Thread) bool { return idOf(a.Head) == idOf(b.Head) }

// began returns how the thread stood when the invocation began that is taken back; false when that is not known.
func (e *Effects) began(r Rollback) (mark, bool) {
	at := len(e.marks) - 1
	if r == RollbackBehind {
		at--
	}
	if at < 0 {
		return mark{}, false
	}
	return e.marks[at], true
}

// StandingSince returns those of [Effects.Standing] that the invocation has made which is taken back. Without one they are all.
func (e *Effects) StandingSince(r Rollback) []EffectRecord {
	standing := e.Standing()
	m, known := e.began(r)
	if r == "" || !known {
		return standing
	}
	for i, of := range standing {
		if of.settled <= m.news { // the newest receipt is the first
			return standing[:i]
		}
	}
	return standing
}

// TakeBack returns where the thread stood before an invocation. The error says why that is not known.
func (e *Effects) TakeBack(r Rollback) (Rewound, error) {
	m, known := e.began(r)
	if !known {
		return Rewound{}, errors.New("it is not known any more how the thread stood before the run: the events of its beginning are gone")
	}
	out := Rewound{Back: true, Thread: m.thread.Copy()}
	for _, r := range e.rows {
		out.Undone = out.Undone || r.undone && r.settled > m.news
	}
	return out, nil
}

// goesTo is where the thread goes on.
func (e *Effects) goesTo(r Rollback) (Rewound, error) {
	if r != "" {
		return e.TakeBack(r)
	}
	return e.Rewind()
}
