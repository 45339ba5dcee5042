package graphadapter

import (
	"context"
	"sync"

	"superstep.dev/graphadapter/ledger"
)

// MemoryJournal is a [Journal] in this process: it is as durable as the process. It is safe for concurrent use.
type MemoryJournal struct {
	mu      sync.Mutex
	at      map[string]int // in entries; nil while there are none
	entries []ledger.Entry
}

// Add puts in entries that are durable elsewhere, replacing those of the same keys.
func (j *MemoryJournal) Add(entries ...ledger.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range entries {
		j.put(e)
	}
}

// Entry returns the entry of that key.
func (j *MemoryJournal) Entry(key string) (ledger.Entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i, ok := j.at[key]
	if !ok {
		return ledger.Entry{}, false
	}
	return j.entries[i], true
}

// Record stores an entry. It fails only with the cause of a context that is done.
func (j *MemoryJournal) Record(ctx context.Context, e ledger.Entry) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.put(e)
	return nil
}

// Entries returns all entries in the order in which they were first recorded.
func (j *MemoryJournal) Entries() []ledger.Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]ledger.Entry(nil), j.entries...)
}

func (j *MemoryJournal) put(e ledger.Entry) {
	if i, ok := j.at[e.Key]; ok {
		j.entries[i] = e
		return
	}
	if j.at == nil {
		j.at = map[string]int{}
	}
	j.at[e.Key] = len(j.entries)
	j.entries = append(j.entries, e)
}
