package pregel

// TaskLedger is what one task of the newest superstep did outside, as its runner recorded it.
type TaskLedger struct {
	Node   string `json:"node"`
	Step   int    `json:"step"`
	Ledger Value  `json:"ledger"`
}

// Ledgers returns the ledgers of the tasks that the newest checkpoint led to, finished ones included, each followed by
// those of the tasks under way within it.
func (p *Program) Ledgers(t *Thread) []TaskLedger {
	if t.Head == nil {
		return nil
	}
	return p.ledgers(t, t.Head, nil)
}

func (p *Program) ledgers(t *Thread, r *Record, nodes []string) []TaskLedger {
	var out []TaskLedger
	for _, e := range r.tasks.sorted() {
		rec := e.rec
		if rec.Ledger != nil {
			out = append(out, TaskLedger{Node: rec.Node, Step: r.Checkpoint.Step + 1, Ledger: rec.Ledger})
		}
		if sub, child := p.childOf(t, rec, nodes); child != nil && !rec.Done && !rec.Handled {
			out = append(out, sub.ledgers(t, child, append(nodes[:len(nodes):len(nodes)], rec.Node))...)
		}
	}
	return out
}
