package pregel

// ShortenLedgers replaces the ledgers of the tasks that the newest checkpoint led to, and of those within them, by what
// short makes of them: the thread is to be stored, and is too large.
func (p *Program) ShortenLedgers(t *Thread, short func(Value) Value) {
	if t.Head != nil {
		p.shorten(t, t.Head, nil, short)
	}
}

func (p *Program) shorten(t *Thread, r *Record, nodes []string, short func(Value) Value) {
	for _, e := range r.tasks.sorted() {
		rec := e.rec
		if rec.Ledger != nil {
			rec.Ledger = short(rec.Ledger)
		}
		for _, key := range sortedKeys(rec.Inner) {
			rec.Inner[key] = short(rec.Inner[key])
		}
		if sub, child := p.childOf(t, rec, nodes); child != nil && !rec.Done && !rec.Handled {
			sub.shorten(t, child, append(nodes[:len(nodes):len(nodes)], rec.Node), short)
		}
	}
}
