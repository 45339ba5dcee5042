package segment

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// segmentTask is one task under way in a segment, and its journal.
type segmentTask struct {
	of       *Segment
	key      string // pregel.Task.Key
	began    time.Time
	attempts taskrun.Attempts

	size atomic.Int64 // at least the bytes of what is new
	over atomic.Bool  // it is more than heartbeats carry: the task yields

	mu      sync.Mutex
	journal *graphadapter.MemoryJournal
	brought map[string]bool // the keys of what the request brought and is as it was; nil for none
}

// Progress is what the execution leaves to the next beside its record, as it is now. It is safe for concurrent use.
// Heartbeats take it before the record: a task that ends meanwhile is then in both, never in neither.
func (s *Segment) Progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Progress{Losses: s.losses, Tasks: map[string]pregel.Value{}}
	for key, news := range s.left {
		p.Tasks[key] = news
	}
	room := s.room()
	for _, over := range []bool{false, true} { // those that yield have what the others leave
		for _, t := range s.under {
			if t.over.Load() == over {
				news := t.news(max(room, 0))
				if room -= len(news); news != nil {
					p.Tasks[t.key] = news
				}
			}
		}
	}
	return p
}

// room is how much of a heartbeat the ledgers of the tasks under way may take together.
func (s *Segment) room() int { return cmp.Or(s.req.LedgerBytes, maxOutcomeBytes) }

// Record is what a heartbeat carries of the deliveries, and how many they are. It is safe for concurrent use.
func (s *Segment) Record() (record []byte, deliveries int) {
	return s.record.carry()
}

// enter makes a task one of those under way, with what earlier executions left to it.
func (s *Segment) enter(t *pregel.Task) (*segmentTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := t.Key()
	brought, between, err := graphadapter.DecodeCarryOver(t.Ledger)
	if err != nil {
		return nil, err
	}
	journal, err := taskrun.NewTaskJournal(t) // with what the thread keeps under the keys that the task owns
	if err != nil {
		return nil, err
	}
	under := &segmentTask{of: s, key: key, began: time.Now(), journal: journal}
	for _, e := range brought {
		if under.brought == nil {
			under.brought = map[string]bool{}
		}
		under.brought[e.Key] = true
	}
	if left, ok := s.left[key]; ok {
		var news []ledger.Entry
		if news, between, err = graphadapter.DecodeCarryOver(left); err != nil {
			return nil, err
		}
		for _, e := range news {
			under.journal.Add(e)
			delete(under.brought, e.Key)
		}
	}
	under.attempts = taskrun.Attempts{Keep: s.host.Keep, Now: s.host.Now, Leave: s.host.Leave, Kept: between}
	s.under[t] = under
	delete(s.left, key)
	return under, nil
}

// news is what is new in the task's ledger, as much of it as has that many bytes; nil for nothing.
func (t *segmentTask) news(most int) pregel.Value {
	t.mu.Lock()
	defer t.mu.Unlock()
	fitted, _ := graphadapter.FitLedger(t.newEntries(), most)
	size, between := 0, t.attempts.CarryOver()
	for _, e := range fitted {
		size += graphadapter.EntrySize(e)
	}
	between.Emitted = taskrun.KeepEmitted(between.Emitted, max(most-size-graphadapter.LedgerFrame, 0))
	v, _ := graphadapter.EncodeCarryOver(fitted, between) // entries are JSON
	return v
}

// newEntries are those that the request did not bring.
func (t *segmentTask) newEntries() []ledger.Entry {
	var news []ledger.Entry
	for _, e := range t.journal.Entries() {
		if !t.brought[e.Key] {
			news = append(news, e)
		}
	}
	return news
}

// ledger is the whole of it.
func (t *segmentTask) ledger() pregel.Value {
	v, _ := graphadapter.EncodeLedger(t.journal.Entries()) // as above
	return v
}

// IsReturned reports whether a task under way is given back before its next attempt.
func (s *Segment) IsReturned(t *pregel.Task) bool {
	s.mu.Lock()
	under, ok := s.under[t]
	s.mu.Unlock()
	return ok && under.attempts.IsReturned()
}

// Leave forgets a task that was under way. What it leaves is recorded before, unless it is given back.
func (s *Segment) Leave(t *pregel.Task, giveBack bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if under, ok := s.under[t]; ok && giveBack {
		if news := under.news(maxOutcomeBytes); news != nil {
			s.left[under.key] = news
		}
	}
	delete(s.under, t)
}

// leftovers is what executions left to tasks that are to run again: those of the queue, and those that were given back.
func (s *Segment) leftovers(queue []*pregel.Task) map[string]pregel.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]pregel.Value{}
	for _, t := range append(s.returned, queue...) {
		if news, ok := s.left[t.Key()]; ok {
			out[t.Key()] = news
		}
	}
	return out
}

// Begins are the keys of the tasks that were ready when this execution began.
func (s *Segment) Begins() []string {
	keys := make([]string, len(s.ready))
	for i, t := range s.ready {
		keys[i] = t.Key()
	}
	return keys
}

// Suspects reports whether an execution that was lost may have run the task.
func (s *Segment) Suspects(t *pregel.Task) bool { return s.suspect.has(t) }

// Root implements taskrun.Runner.
func (s *Segment) Root() *graphadapter.Graph { return s.graph }

// Begin implements taskrun.Runner.
func (s *Segment) Begin(t *pregel.Task, env *taskrun.Env) *pregel.Outcome {
	under, err := s.enter(t)
	if err != nil {
		return &pregel.Outcome{Error: graphadapter.FailureOf(s.graph.NameOf(t), t.Node, err)}
	}
	if s.host.Refuse != nil {
		if refused := s.host.Refuse(t); refused != nil {
			refused.Ledger, refused.Kept = under.ledger(), taskrun.KeptOf(t, under.Entries())
			return refused
		}
	}
	*env = taskrun.Env{Thread: s.req.Thread, Context: s.req.Context, Requester: s.req.Requester, Journal: under, Attempts: &under.attempts,
		Behind: graphadapter.Milliseconds(s.req.Behind), Suspect: s.suspect.has(t) || under.attempts.CarryOver().Suspect,
		Lost: s.suspect.lost && s.suspect.has(t)}
	if s.host.Prepare != nil {
		s.host.Prepare(t, env)
	}
	return nil
}

// End implements taskrun.Runner: what the task did outside goes with its outcome.
func (s *Segment) End(t *pregel.Task, o *pregel.Outcome) {
	if o.Ledger != nil {
		return
	}
	s.mu.Lock()
	under := s.under[t]
	s.mu.Unlock()
	entries := under.Entries()
	o.Kept = taskrun.KeptOf(t, entries)
	o.Ledger, _ = graphadapter.EncodeLedger(entries) // entries are JSON
}
