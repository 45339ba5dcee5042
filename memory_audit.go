package superstep

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

// memoryAudit is the audit of a thread in memory. It has a lock of its own, because the engine tells of uses while the
// thread's is held.
type memoryAudit struct {
	mu      sync.Mutex
	chain   approval.Chain
	entries []approval.Entry
	uses    map[string]bool
}

func (a *memoryAudit) add(e approval.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addLocked(e)
}

func (a *memoryAudit) addLocked(e approval.Entry) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	a.entries = append(a.entries, a.chain.Append(e))
	if n := len(a.entries); n > maxMemoryAudit {
		a.entries = slices.Delete(a.entries, 0, n-maxMemoryAudit)
	}
}

// observe notes what became of approvals that tasks were given.
func (a *memoryAudit) observe(thread string, e pregel.Event) {
	if e.Kind != pregel.EventLedger {
		return
	}
	uses, err := graphadapter.ApprovalUses(e.Value)
	if err != nil {
		return // its task cannot run on with it either, and says so
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, u := range uses {
		if a.uses[u.ID] {
			continue
		}
		if a.uses == nil {
			a.uses = map[string]bool{}
		}
		a.uses[u.ID] = true
		kind := approval.KindUsed
		if !u.Used {
			kind = approval.KindNotUsed
		}
		a.addLocked(approval.Entry{Kind: kind, Thread: thread, Question: u.Question, Who: u.By, Token: u.Token, KeyID: u.KeyID,
			ParamsHash: u.ParamsHash, Code: approval.Code(u.Code), Reason: u.Why})
	}
}

func (m *Memory) auditOf(_ context.Context, g *graphadapter.Graph, thread string) ([]approval.Entry, approval.Chain, error) {
	t, err := m.begun(g, thread)
	if err != nil {
		return nil, approval.Chain{}, err
	}
	t.audit.mu.Lock()
	defer t.audit.mu.Unlock()
	return slices.Clone(t.audit.entries), t.audit.chain, nil
}
