package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// maxMemoryAudit bounds the entries that a thread in memory keeps: the newest. Its chain counts all of them.
const maxMemoryAudit = 10_000

// memoryHeard are the ledgers that the engine has told of and that are not in the audit yet. The engine tells while the thread's
// lock is held, too.
type memoryHeard struct {
	mu  sync.Mutex
	all []heardEvent
}

type heardEvent struct {
	at time.Time
	pregel.Event
}

// Observe is told what the engine reports.
func (h *memoryHeard) Observe(e pregel.Event) {
	if e.Kind != pregel.EventLedger {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, heardEvent{time.Now(), e})
}

// listen brings the audit up to date with what the engine has told; t.mu is held.
func (t *memoryThread) listen() {
	t.heard.mu.Lock()
	all := t.heard.all
	t.heard.all = nil
	t.heard.mu.Unlock()
	for _, e := range all {
		t.life.Happened(e.at, e.Event)
	}
	t.act(t.life.Actions())
}

// ExportOf implements runtime.Runtime.
func (m *Runtime) ExportOf(ctx context.Context, g *graphadapter.Graph, thread string) (approval.Export, error) {
	var x approval.Export
	var err error
	if x.Entries, x.Chain, err = m.AuditOf(ctx, g, thread); err != nil || m.Heads == nil {
		return x, err
	}
	x.Signed, err = m.Heads.SignHead(approval.Head{Thread: thread, Chain: x.Chain})
	return x, err
}

// AuditOf implements runtime.Runtime.
func (m *Runtime) AuditOf(_ context.Context, g *graphadapter.Graph, thread string) ([]approval.Entry, approval.Chain, error) {
	t, err := m.Begun(g, thread)
	if err != nil {
		return nil, approval.Chain{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listen()
	return slices.Clone(t.entries), t.life.Chain, nil
}
