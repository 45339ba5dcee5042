package memory

import (
	"sync"
	"time"

	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/thread"
)

// heard are the ledgers that the engine has told of and that are not in the audit yet. The engine tells while the thread's
// lock is held, too.
type heard struct {
	mu  sync.Mutex
	all []heardEvent
}

type heardEvent struct {
	at time.Time
	pregel.Event
}

// Observe is told what the engine reports.
func (h *heard) Observe(e pregel.Event) {
	if e.Kind != pregel.EventLedger {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, heardEvent{time.Now(), e})
}

// effects keeps what a thread in memory did outside.
type effects struct {
	mu  sync.Mutex
	all *past.Effects
}

func newEffects() effects {
	return effects{all: past.NewEffects("", func(int64) time.Time { return time.Now() })}
}

// begins notes that a run begins: what comes next is its.
func (m *effects) begins(run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Within(run)
}

// Observe is told what the engine reports.
func (m *effects) Observe(e pregel.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Happened(0, e)
}

// Stands implements [taskrun.Standing].
func (m *effects) Stands(p *pregel.Program, t *pregel.Thread) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Stands(p, t)
}

// Made implements [taskrun.Standing].
func (m *effects) Made(r *pregel.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Made(r)
}

func (m *effects) rewind() (past.Rewound, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.Rewind()
}

// ended notes how a run ended.
func (m *effects) ended(s thread.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s == thread.StatusFinished {
		m.all.Ended(0, pregel.StatusDone, nil)
	}
}

func (m *effects) records() []past.EffectRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.All()
}

// standing are the effects to undo.
func (m *effects) standing() []taskrun.Compensation {
	m.mu.Lock()
	defer m.mu.Unlock()
	request := taskrun.StandingRequest{}
	var out []taskrun.Compensation
	for more := true; more; {
		page := request.Page(m.all.Standing())
		out = append(out, page.Effects...)
		request.Skip, more = len(out), page.More
	}
	return out
}
