package life

import (
	"fmt"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Event is an event for every task of the thread that waits for it, or, when none does, for the first that will. The reply is
// an [EventReply].
type Event struct {
	// ID makes the request idempotent, also across the runs of a thread.
	ID string `json:"id"`
	// Call names one call of its sender, as in [Answer].
	Call  string       `json:"call,omitempty"`
	Name  string       `json:"name"`
	Value pregel.Value `json:"value,omitempty"`
	By    string       `json:"by,omitempty"`
	// Token proves who sends it, where rules want that.
	Token string `json:"token,omitempty"`

	// stored says that its sender was promised that it is stored: it is kept beyond what a thread keeps otherwise.
	stored bool
}

// EventReply says what became of an event.
type EventReply struct {
	// Nodes are the nodes that waited for the event, one for each wait; none when the event is kept for a wait to come.
	Nodes []string `json:"nodes,omitempty"`
	// Repeated says that this very request had been taken before, by the Call of another name.
	Repeated bool   `json:"repeated,omitempty"`
	Call     string `json:"call,omitempty"`
	// Paused says that nothing goes on with the event before somebody unpauses the run.
	Paused bool `json:"paused,omitempty"`
}

func (e Event) head() head { return head{nameEvent, e.ID, e.By, e.Token} }

func (e Event) bounds() error {
	if e.ID == "" || len(e.ID) > MaxNameBytes || len(e.Call) > MaxNameBytes || len(e.By) > MaxNameBytes {
		return refuse(BadAnswer, "an event has an id and a sender of at most %d bytes", MaxNameBytes)
	}
	if err := graphadapter.CheckEvent(e.Name, e.Value); err != nil {
		return refuse(BadAnswer, "%v", err)
	}
	return nil
}

func (e Event) control(*Run) approval.Control {
	return approval.Control{Op: approval.OpEvent, On: e.Name}
}

func (e Event) refusal(r *Run) error {
	waiting := false
	for _, q := range r.Waits() {
		if q.Awaits(e.Name) {
			waiting = true
			if err := graphadapter.CheckAnswer(q.For(e.Name), e.Value); err != nil {
				return refuse(BadAnswer, "node %q waits for the event %q: %v", q.Node, e.Name, err)
			}
		}
	}
	if !waiting && !e.stored && !r.hasRoom(len(e.Value)) {
		return refuse(Busy, "nobody waits for the event %q yet, and the thread keeps no more than %d events and %d bytes of "+
			"them", e.Name, graphadapter.MaxKeptEvents, graphadapter.MaxKeptBytes)
	}
	return nil
}

// hasRoom reports whether the thread keeps one more event with a value of that many bytes.
func (s *State) hasRoom(bytes int) bool {
	return len(s.Kept) < graphadapter.MaxKeptEvents && s.KeptBytes()+bytes <= graphadapter.MaxKeptBytes
}

// Full reports whether the thread keeps as many events as it may, or more, so that none should be stored for it any more.
func (s *State) Full() bool { return !s.hasRoom(1) }

// RefuseUnread notes that a message without a reply could not be read.
func (s *State) RefuseUnread(reason string, now time.Time) {
	s.noteRefused(Refused{Reason: reason}, now)
}

// DropKept drops the newest events that are kept until the others have at most that many bytes, and notes each as refused. It is for
// the end of a run: an event that does not fit beside the thread's state must not cost the state.
func (s *State) DropKept(most int) {
	size := s.KeptBytes()
	for size > max(most, 0) {
		last := s.Kept[len(s.Kept)-1]
		s.Kept = s.Kept[: len(s.Kept)-1 : len(s.Kept)-1]
		size -= len(last.Value)
		s.noteRefused(Refused{Event: last.Name, By: last.By, Reason: fmt.Sprintf("the run has ended, and its last event has room "+
			"for %d bytes of events beside the thread's state", max(most, 0))}, last.At)
	}
}

// take gives an event to all who wait for it, or keeps it.
func (e Event) take(r *Run, by Actor, now time.Time) any {
	var nodes []string
	for _, q := range r.Waits() {
		if q.Awaits(e.Name) {
			nodes = append(nodes, q.Node)
			r.give(q, e.ID, arrived(q, e.Name, e.Value, by.Name()), now)
		}
	}
	if len(nodes) == 0 {
		r.State.Kept = append(slices.Clip(r.State.Kept),
			KeptEvent{Name: e.Name, Value: e.Value, By: by.Name(), At: now, ID: e.ID, All: r.stand().Blind})
	}
	r.Note(now, entryEvent(by, e.Name, nodes))
	return EventReply{Nodes: nodes, Call: e.Call, Paused: r.State.Paused != nil}
}

func (e Event) again(_ *Run, before Taken) any {
	reply := read[EventReply](before)
	reply.Repeated = isRepeat(e.Call, reply.Call)
	return reply
}

// arrived is what a wait is given for an event.
func arrived(q pregel.OpenQuestion, name string, value pregel.Value, by string) pregel.Answer {
	a := pregel.Answer{QuestionID: q.ID, Value: value, By: by}
	if len(q.Events) > 0 {
		a.Event = name
	}
	return a
}

// TakenEvent is the outcome of an event that was taken.
func (s *State) TakenEvent(id string) (EventReply, bool) {
	before, ok := s.Taken.Find(nameEvent, id)
	return read[EventReply](before), ok
}

// give notes the end of a wait, or of a question that silence answers; the engine is told when it can go on.
func (r *Run) give(q pregel.OpenQuestion, request string, a pregel.Answer, now time.Time) {
	r.note(Answered{Question: q.ID, Node: q.Node, RequestID: request, By: a.By, At: now})
	r.State.Given = append(slices.Clip(r.State.Given), a)
	r.look = true
}

// Waits are the tasks' waits for events that are not over, in task order; none while the thread is about to change, or its
// superstep to be dropped: what comes then is for the waits after that.
func (r *Run) Waits() []pregel.OpenQuestion {
	stand := r.stand()
	if stand.changing() || stand.Blind || r.Drops() {
		return nil
	}
	return slices.DeleteFunc(r.Unanswered(), func(q pregel.OpenQuestion) bool { return q.Event == "" })
}

// attendWaits gives events that were kept to those who wait for them by now, ends the waits and questions whose time is over, and
// times the others.
func (r *Run) attendWaits(now time.Time) {
	r.giveToAll(now)
	var due []Due
	for _, q := range slices.Concat(r.Waits(), r.deadlines()) {
		if q.Event != "" && r.giveKept(q, now) || q.Timeout <= 0 {
			continue
		}
		if at := r.dueAt(q, now); at.After(now) {
			due = append(due, Due{Question: q.ID, At: at})
		} else {
			r.expire(q, now)
		}
	}
	r.State.Due = due
}

// deadlines are the open questions for people, other than approvals, that have one; none while waits are none.
func (r *Run) deadlines() []pregel.OpenQuestion {
	if stand := r.stand(); stand.changing() || stand.Blind || r.Drops() {
		return nil
	}
	return slices.DeleteFunc(r.Questions(), func(q pregel.OpenQuestion) bool {
		return q.Approval != nil || q.Timeout <= 0 || r.claimOf(q.ID) != nil
	})
}

// expire ends a wait or a question whose time is over.
func (r *Run) expire(q pregel.OpenQuestion, now time.Time) {
	if q.Event == "" {
		r.Note(now, entryUnanswered(q.Question))
	}
	r.give(q, "", pregel.Answer{QuestionID: q.ID, Value: q.Default, TimedOut: true}, now)
}

// giveToAll gives events that came while nobody could tell what waits to all who did. One that nobody waited for is kept on.
func (r *Run) giveToAll(now time.Time) {
	if r.stand().Blind {
		return
	}
	kept := r.State.Kept[:0:0]
	for _, k := range r.State.Kept {
		given := false
		for _, q := range r.Waits() {
			if k.All && q.Awaits(k.Name) && graphadapter.CheckAnswer(q.For(k.Name), k.Value) == nil {
				given = true
				r.give(q, k.ID, arrived(q, k.Name, k.Value, k.By), now)
			}
		}
		if k.All = false; !given {
			kept = append(kept, k)
		}
	}
	r.State.Kept = kept
}

// giveKept ends a wait with the oldest event of its name that was kept. Events that do not fit it were sent when nobody knew
// what would: they are noted as refused, and gone.
func (r *Run) giveKept(q pregel.OpenQuestion, now time.Time) bool {
	for {
		at := slices.IndexFunc(r.State.Kept, func(k KeptEvent) bool { return q.Awaits(k.Name) })
		if at < 0 {
			return false
		}
		kept := r.State.Kept[at]
		r.State.Kept = slices.Delete(slices.Clone(r.State.Kept), at, at+1)
		if err := graphadapter.CheckAnswer(q.For(kept.Name), kept.Value); err != nil {
			r.noteRefused(Refused{Question: q.ID, Event: kept.Name, By: kept.By, Reason: err.Error()}, now)
			continue
		}
		r.give(q, kept.ID, arrived(q, kept.Name, kept.Value, kept.By), now)
		return true
	}
}

// ForgetWaits lets who waits begin anew: the superstep that did is forgotten.
func (r *Run) ForgetWaits() { r.State.Due, r.look = nil, true }
