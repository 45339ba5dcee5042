package superstep

import (
	"context"
	"slices"
	"sync"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
)

// maxMemoryAudit bounds the entries that a thread in memory keeps: the newest. Its chain counts all of them.
const maxMemoryAudit = 10_000

// memoryAudit is the audit of a thread in memory. It has a lock of its own, because the engine tells of uses while the
// thread's is held.
type memoryAudit struct {
	mu      sync.Mutex
	state   trail.State
	trail   trail.Trail
	entries []approval.Entry
}

func newMemoryAudit(thread string) *memoryAudit {
	a := &memoryAudit{}
	a.trail = trail.Trail{State: &a.state, Thread: thread, Noted: func(e approval.Entry) {
		a.entries = append(a.entries, e)
		if n := len(a.entries); n > maxMemoryAudit {
			a.entries = slices.Delete(a.entries, 0, n-maxMemoryAudit)
		}
	}}
	return a
}

func (a *memoryAudit) note(all ...approval.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range all {
		a.trail.Note(time.Now(), e)
	}
}

// refuse counts what was refused.
func (a *memoryAudit) refuse(e approval.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trail.Refuse(e, 1)
	a.trail.Flush(time.Now(), false)
}

// flush notes what was refused and is in no entry yet: the run is over.
func (a *memoryAudit) flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trail.Flush(time.Now(), true)
}

// observe notes what ledgers tell.
func (a *memoryAudit) observe(e pregel.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trail.Happened(time.Now(), e)
}

// WithAuditSigner makes a [Memory] sign the ends of audits that are exported, as a worker does with WorkerConfig.AuditSigner.
func WithAuditSigner(s approval.HeadSigner) MemoryOption {
	return memoryOption(func(m *Memory) { m.heads = s })
}

func (m *Memory) exportOf(ctx context.Context, g *graphadapter.Graph, thread string) (approval.Export, error) {
	var x approval.Export
	var err error
	if x.Entries, x.Chain, err = m.auditOf(ctx, g, thread); err != nil || m.heads == nil {
		return x, err
	}
	x.Signed, err = m.heads.SignHead(approval.Head{Thread: thread, Chain: x.Chain})
	return x, err
}

func (m *Memory) auditOf(_ context.Context, g *graphadapter.Graph, thread string) ([]approval.Entry, approval.Chain, error) {
	t, err := m.begun(g, thread)
	if err != nil {
		return nil, approval.Chain{}, err
	}
	t.audit.mu.Lock()
	defer t.audit.mu.Unlock()
	return slices.Clone(t.audit.entries), t.audit.state.Chain, nil
}
