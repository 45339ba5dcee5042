package past

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// presentLine is the line of checkpoints on which a thread stands: its newest one and those it came from.
type presentLine struct {
	program *pregel.Program
	thread  *pregel.Thread
	head    *stand            // at the newest
	parents map[string]string // of the root graph's checkpoints, as they were made
}

func newPresentLine() presentLine { return presentLine{parents: map[string]string{}} }

// stand is where a thread stood once: its record, to which writes from outside are added later, and the thread as it was
// then.
type stand struct {
	*pregel.Record
	thread *pregel.Thread
}

// goneOn is the same stand, of which a later run of the thread knows more.
func (s *stand) goneOn(later *stand) *stand { return &stand{s.Join(later.Record), s.thread} }

func (s *stand) is(other *stand) bool {
	return s != nil && other != nil && s.Checkpoint.ID == other.Checkpoint.ID
}

// stands notes where the thread stands.
func (l *presentLine) stands(p *pregel.Program, t *pregel.Thread) {
	l.program, l.thread = p, t
	if t.Head != nil && (l.head == nil || l.head.Checkpoint.ID != t.Head.Checkpoint.ID) {
		l.at(&stand{t.Head, t.Copy()}) // what its subgraphs remember now, they remembered then
	}
}

// made notes the thread's newest checkpoint, which has been made just now.
func (l *presentLine) made(r *pregel.Record) { l.at(&stand{r, l.thread}) }

// at notes the newest checkpoint. Where a run leaves one checkpoint it gives that another parent afterwards: the first
// one counts.
func (l *presentLine) at(r *stand) {
	l.head = r
	if _, known := l.parents[r.Checkpoint.ID]; !known {
		l.parents[r.Checkpoint.ID] = r.Checkpoint.Parent
	}
}

// goOn takes in the line of the thread's next run.
func (l *presentLine) goOn(next *presentLine) {
	for _, id := range slices.Sorted(maps.Keys(next.parents)) {
		if _, known := l.parents[id]; !known {
			l.parents[id] = next.parents[id]
		}
	}
	if next.thread != nil {
		l.program, l.thread, l.head = next.program, next.thread, next.head
	}
}

// has reports whether the thread came by a checkpoint on its way to where it stands.
func (l *presentLine) has(r *stand) bool {
	if l.head == nil || r == nil {
		return false
	}
	for id, seen := l.head.Checkpoint.ID, 0; id != "" && seen <= len(l.parents); id, seen = l.parents[id], seen+1 {
		if id == r.Checkpoint.ID {
			return true
		}
	}
	return false
}

// Rewound is where a thread goes on behind the compensation of what it did.
type Rewound struct {
	// Undone says that something has been undone since the thread last finished: what runs next has new keys then, since
	// under the old ones a target may answer with the receipt of a write that is not there. Otherwise the thread goes on
	// where it stands, and finds what it did under the keys that it had.
	Undone bool
	// Back says that Thread is the thread as it stood before the invocation that is taken back.
	Back bool
	// Thread is the thread as it stood before the oldest superstep on its present line of which a cancellation has undone
	// a write: what came of that superstep must not count. It is nil when the thread stands there already, or before it.
	Thread *pregel.Thread
	// Left is what stands of what the thread did from there on, for [pregel.Thread.CarryLedgers]: whoever comes to the same
	// place again finds it, and does not make it a second time. What is large is cut: a receipt that is missing is looked up.
	Left map[string]pregel.Value
}

// Rewind returns where the thread goes on. The error says why it can go on neither there nor where it stands.
func (e *Effects) Rewind() (Rewound, error) {
	var out Rewound
	to := e.line.head
	for _, r := range e.rows {
		switch {
		case !r.undone || r.settled <= e.done:
			continue
		case r.before == nil:
			return Rewound{}, fmt.Errorf("it is not known any more where %s (key %s) was called, which was undone", r.Name, r.Key)
		case e.line.has(r.before) && r.before.Checkpoint.Seq < to.Checkpoint.Seq:
			to = r.before
		}
		out.Undone = true
	}
	if !to.is(e.line.head) {
		out.Thread = to.thread.At(to.Record, pregel.ForReplay)
	}
	if to == nil || !out.Undone {
		return out, nil
	}
	var err error
	out.Left, err = e.left(to)
	return out, err
}

// GoBack lets a thread, of which the superstep under way was dropped, go on where that says, with new keys, and returns the
// checkpoint that it has made of an earlier one; nil when the thread stands where it stood.
func GoBack(p *pregel.Program, t *pregel.Thread, to Rewound) *pregel.Record {
	var made *pregel.Record
	switch {
	case to.Back:
		t.TakeBack(p, to.Thread, to.Undone)
		return nil
	case !to.Undone:
		return nil
	case to.Thread != nil:
		made = p.Rewind(t, to.Thread)
	default:
		t.Renew()
	}
	t.CarryLedgers(to.Left)
	return made
}

// left are the ledgers of the effects that stand of the supersteps from a checkpoint of the present line on.
func (e *Effects) left(from *stand) (map[string]pregel.Value, error) {
	standing := e.Standing()
	slices.Reverse(standing)
	line, _ := pregel.Renewals(from.Checkpoint.Branch)
	entries, size, before := map[string][]ledger.Entry{}, 0, e.leftBefore()
	for _, r := range standing {
		comes := e.line.has(r.before) && r.before.Checkpoint.Seq >= from.Checkpoint.Seq
		if r.ThreadWide || !comes && !before[r.Key] {
			continue
		}
		if on, _ := pregel.Renewals(r.before.Checkpoint.Branch); on != line || r.Place == "" {
			return nil, fmt.Errorf("%s (key %s) of node %q was left as it is, and the thread comes to where it was made on another "+
				"way, as it was updated or forked since %s: it would be made a second time", r.Name, r.Key, r.Node, from.Checkpoint.ID)
		}
		entry := r.Entry
		if n := graphadapter.EntrySize(entry); n > maxLeftEntry || size+n > maxLeftTotal {
			entry = entry.Slim()
		}
		size += graphadapter.EntrySize(entry)
		entries[r.Place] = append(entries[r.Place], entry)
	}
	left := make(map[string]pregel.Value, len(entries))
	for _, place := range slices.Sorted(maps.Keys(entries)) {
		stored, err := graphadapter.EncodeLedger(entries[place])
		if err != nil {
			return nil, err
		}
		left[place] = stored
	}
	return left, nil
}

// leftBefore are the keys of the effects with which an earlier cancellation has left the thread, and to which it has not come
// again yet.
func (e *Effects) leftBefore() map[string]bool {
	keys := map[string]bool{}
	if e.line.thread == nil {
		return keys
	}
	left := e.line.thread.CarriedLedgers()
	for _, place := range slices.Sorted(maps.Keys(left)) {
		for _, entry := range effectsIn(left[place]) {
			keys[entry.Key] = true
		}
	}
	return keys
}

// RewindRequest is the input of RewindActivity.
type RewindRequest struct {
	Graph  string `json:"graph"`
	Thread string `json:"thread"`
	// Rollback asks for where the thread stood before an invocation, instead of before what was undone.
	Rollback Rollback `json:"rollback,omitempty"`
}

// RewindReply is a [Rewound] on its way to the run.
type RewindReply struct {
	Undone bool                    `json:"undone,omitempty"`
	Back   bool                    `json:"back,omitempty"`
	State  pregel.Value            `json:"state,omitempty"`
	Left   map[string]pregel.Value `json:"left,omitempty"`
	// Problem says why the thread can go on neither there nor where it stands; "" when it can.
	Problem string `json:"problem,omitempty"`
}

// maxRewound bounds the state that the thread goes back to, with what it is left with, in bytes: it is one payload.
const maxRewound = 1800 << 10

// RewindReply returns [Effects.Rewind], or [Effects.TakeBack], as it travels.
func (e *Effects) RewindReply(r RewindRequest) RewindReply {
	to, err := e.goesTo(r.Rollback)
	reply := RewindReply{Undone: to.Undone, Back: to.Back, Left: to.Left}
	if err == nil && to.Thread != nil {
		reply.State, err = e.line.program.EncodeThread(to.Thread)
	}
	size := len(reply.State)
	for _, ledger := range reply.Left {
		size += len(ledger)
	}
	if err == nil && size > maxRewound {
		err = fmt.Errorf("the state has %d bytes there, with what was left as it is, and at most %d can be gone back to", size, maxRewound)
	}
	if err != nil {
		return RewindReply{Problem: graphadapter.Bounded(err.Error())}
	}
	return reply
}

// Read returns what the reply says, for a thread of that program.
func (r RewindReply) Read(p *pregel.Program) (Rewound, error) {
	to := Rewound{Undone: r.Undone, Back: r.Back, Left: r.Left}
	if r.Problem != "" {
		return to, errors.New(r.Problem)
	}
	var err error
	if r.State != nil {
		to.Thread, err = p.DecodeThread(r.State)
	}
	return to, err
}

// The bounds of what a thread is left with, in bytes: of one effect with its parameters and receipt, and of all. Effects
// beyond that go without them.
const (
	maxLeftEntry = 16 << 10
	maxLeftTotal = 256 << 10
)

// made reports whether an effect is made, or may be.
func made(r *EffectRecord) bool {
	return r.State == ledger.StateCommitted || r.State == ledger.StateIntent || r.State == ledger.StateUnknown
}
