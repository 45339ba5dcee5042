package pregel

// TaskLedger is what one task of the newest superstep did outside, as its runner recorded it.
type TaskLedger struct {
	Node   string `json:"node"`
	Step   int    `json:"step"`
	Ledger Value  `json:"ledger"`
	// Place is the task's [Task.Place].
	Place string `json:"place,omitempty"`
}

// Ledgers returns the ledgers of the tasks that the newest checkpoint led to, finished ones included, each followed by
// those of the tasks under way within it.
func (p *Program) Ledgers(t *Thread) []TaskLedger {
	if t.Head == nil {
		return nil
	}
	return p.ledgers(t, t.Head, nil, "")
}

func (p *Program) ledgers(t *Thread, r *Record, nodes []string, space string) []TaskLedger {
	var out []TaskLedger
	for _, e := range r.tasks.sorted() {
		rec := e.rec
		task := &Task{Namespace: space, Step: r.Checkpoint.Step + 1, Path: e.path, Branch: r.Checkpoint.Branch}
		if rec.Ledger != nil {
			out = append(out, TaskLedger{Node: rec.Node, Step: task.Step, Ledger: rec.Ledger, Place: task.Place()})
		}
		if sub, child := p.childOf(t, rec, nodes); child != nil && !rec.Done && !rec.Handled {
			out = append(out, sub.ledgers(t, child, append(nodes[:len(nodes):len(nodes)], rec.Node), childNamespace(task))...)
		}
	}
	return out
}
