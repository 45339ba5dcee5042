package memory

import (
	"context"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// memoryEffects keeps what a thread in memory did outside.
type memoryEffects struct {
	mu  sync.Mutex
	all *past.Effects
}

func newMemoryEffects() memoryEffects {
	return memoryEffects{all: past.NewEffects("", func(int64) time.Time { return time.Now() })}
}

// begins notes that a run begins: what comes next is its.
func (m *memoryEffects) begins(run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Within(run)
}

// Observe is told what the engine reports.
func (m *memoryEffects) Observe(e pregel.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Happened(0, e)
}

// Stands implements [taskrun.Standing].
func (m *memoryEffects) Stands(p *pregel.Program, t *pregel.Thread) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Stands(p, t)
}

// Made implements [taskrun.Standing].
func (m *memoryEffects) Made(r *pregel.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Made(r)
}

func (m *memoryEffects) rewind() (past.Rewound, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.Rewind()
}

// ended notes how a run ended.
func (m *memoryEffects) ended(s thread.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s == thread.StatusFinished {
		m.all.Ended(0, pregel.StatusDone, nil)
	}
}

func (m *memoryEffects) records() []past.EffectRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.All()
}

// EffectsOf implements runtime.Runtime.
func (m *Runtime) EffectsOf(_ context.Context, g *graphadapter.Graph, threadID string) (thread.EffectsView, error) {
	t, err := m.Begun(g, threadID)
	if err != nil {
		return thread.EffectsView{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return thread.EffectsView{Thread: t.id, Graph: t.graph, Status: t.view.Status, Effects: runtime.EffectsView(t.effects.records())}, nil
}
