package taskrun

import (
	"bytes"

	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/jsontext"
)

// The bounds of what one attempt may emit: its values are part of the task's result, which is stored with the run.
const (
	// MaxEmitted is the greatest number of values.
	MaxEmitted = 10_000
	// MaxEmittedValue is the greatest size of one value, in bytes of JSON.
	MaxEmittedValue = 256 << 10
	// MaxEmittedTotal is the greatest size of all values together, in bytes of JSON.
	MaxEmittedTotal = 1 << 20
)

// KeepEmitted returns what a failed attempt, and those before it, emitted, cut to about that many bytes of JSON: the
// oldest go first. What is left begins with the reset of its own attempt if one went, so that it is never taken for an
// earlier one's.
func KeepEmitted(emitted []pregel.Emission, most int) []pregel.Emission {
	from, size := len(emitted), emittedSize(pregel.Emission{})
	for from > 0 && size+emittedSize(emitted[from-1]) <= most {
		from--
		size += emittedSize(emitted[from])
	}
	kept := emitted[from:]
	if len(kept) > 0 && kept[0].Kind == pregel.EmissionReset {
		return kept
	}
	for i := from - 1; i >= 0; i-- {
		if emitted[i].Kind == pregel.EmissionReset {
			return append([]pregel.Emission{emitted[i]}, kept...)
		}
	}
	return kept
}

// emittedSize bounds the bytes of one emission as stored JSON, where <, > and & take six bytes and the two line
// separators of Unicode six instead of three.
func emittedSize(e pregel.Emission) int {
	const frame = 64 // kind, attempt and the names of the fields
	size := frame + len(e.Value)
	for _, c := range []string{"<", ">", "&", "\u2028", "\u2029"} {
		size += 5 * bytes.Count(e.Value, []byte(c))
	}
	return size
}

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

// KeptOf returns what the thread shall keep of a task's ledger: the entries under the thread-wide keys that it owns, each
// cut to what a thread keeps.
func KeptOf(task *pregel.Task, entries []ledger.Entry) map[string]pregel.Value {
	var kept map[string]pregel.Value
	for _, e := range entries {
		if _, owned := task.Kept[e.Key]; !owned || !e.ThreadWide {
			continue
		}
		if graphadapter.EntrySize(e) > maxKeptEntry {
			e = e.Slim()
			e.Evidence = clip.Text(e.Evidence, maxKeptEntry/4)
		}
		v, err := jsontext.Encode(e)
		if err != nil {
			continue // no such entry is recorded
		}
		if kept == nil {
			kept = map[string]pregel.Value{}
		}
		kept[e.Key] = v
	}
	return kept
}

// KeptIn is KeptOf a stored ledger; nil for one that cannot be read.
func KeptIn(task *pregel.Task, stored pregel.Value) map[string]pregel.Value {
	entries, err := graphadapter.DecodeLedger(stored)
	if err != nil {
		return nil
	}
	return KeptOf(task, entries)
}

// maxKeptEntry bounds what a thread keeps under one of its keys, in bytes.
const maxKeptEntry = 4<<10 - ledger.KeyLength - 32
