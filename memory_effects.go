package superstep

import (
	"context"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
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

func (m *memoryEffects) observe(e pregel.Event) {
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
func (m *memoryEffects) ended(s Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s == StatusFinished {
		m.all.Ended(0, pregel.StatusDone, nil)
	}
}

func (m *memoryEffects) records() []past.EffectRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.All()
}

func (m *Memory) effectsOf(_ context.Context, g *graphadapter.Graph, thread string) (EffectsView, error) {
	t, err := m.begun(g, thread)
	if err != nil {
		return EffectsView{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return EffectsView{Thread: t.id, Graph: t.graph, Status: t.view.Status, Effects: effectsView(t.effects.records())}, nil
}
