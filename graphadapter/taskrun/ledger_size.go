package taskrun

import (
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
)

// maxLedgerBytes bounds the whole ledger of one task: it travels in one payload, beside what else the task is given or
// comes back with. Of what is beyond it the ledger keeps that it happened, not what came of it.
const maxLedgerBytes = 768 << 10

// LedgerFullError says that a task has made so many calls that its ledger has no room for one more. The call was not
// made.
type LedgerFullError struct {
	Graph, Node, Thread string
	// Calls is how many the ledger has, Limit its size in bytes.
	Calls, Limit int
}

func (e *LedgerFullError) Error() string {
	return fmt.Sprintf("node %q of graph %q, thread %q, has made %d calls, whose records fill its ledger of %d bytes; the "+
		"next one was not made: do the work in several tasks, by Send or one superstep after the other", e.Node, e.Graph,
		e.Thread, e.Calls, e.Limit)
}

// Permanent says that no retry helps.
func (e *LedgerFullError) Permanent() bool { return true }

// ledgerSizes are the bytes of a task's entries.
type ledgerSizes struct {
	of    map[string]int // nil for none
	total int
}

func sizesOf(entries []ledger.Entry) ledgerSizes {
	s := ledgerSizes{total: graphadapter.LedgerFrame}
	for _, e := range entries {
		s.set(e.Key, graphadapter.EntrySize(e))
	}
	return s
}

func (s *ledgerSizes) set(key string, size int) {
	s.total += size - s.of[key]
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.of[key] = size
}

// fits reports whether e has room in place of the entry of its key.
func (s *ledgerSizes) fits(e ledger.Entry) bool {
	return s.total-s.of[e.Key]+graphadapter.EntrySize(e) <= maxLedgerBytes
}

// sized returns the entry as it has room in the task's ledger: whole, or without what is too large to keep, of which the
// log and the entry tell. record is false for a memoised call that cannot even be noted.
func (a *attempt) sized(e ledger.Entry) (fitting ledger.Entry, record bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fitting, record = e, true
	if !a.sizes.fits(e) {
		if fitting, record, err = a.cut(e); err != nil || !record {
			return fitting, false, err
		}
	}
	a.sizes.set(e.Key, graphadapter.EntrySize(fitting))
	return fitting, true, nil
}

// cut makes an entry smaller.
func (a *attempt) cut(e ledger.Entry) (ledger.Entry, bool, error) {
	if e.Result != nil {
		e = graphadapter.WithoutResult(e)
		note := fmt.Sprintf("its result has %d bytes, too large to be kept with the task's", e.Left)
		if e.Evidence == "" {
			e.Evidence = note
		}
		a.goesWithout(fmt.Errorf("%s %q of node %q, graph %q, thread %q: %s", e.Kind, e.Name, a.info.Node, a.info.Graph,
			a.info.Thread, note))
	}
	switch {
	case a.sizes.fits(e):
		return e, true, nil
	case e.Kind != ledger.KindEffect:
		return e, false, nil
	}
	e.Params = nil
	if !a.sizes.fits(e) && e.State == ledger.StateIntent {
		return e, false, &LedgerFullError{Graph: a.info.Graph, Node: a.info.Node, Thread: a.info.Thread,
			Calls: len(a.sizes.of), Limit: maxLedgerBytes}
	}
	return e, true, nil // what a call that is on record came to is always put on record too
}
