package superstep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
)

// memoryEvents are the events of a thread in memory. They are guarded by the thread's lock.
type memoryEvents struct {
	// waits are those of the tasks, while the run rests.
	waits []pregel.Question
	// sent are events that came while the run was under way, kept those that nobody has waited for yet.
	sent, kept []memoryEvent
	taken      map[string][]string // nodes by request id
	due        map[string]time.Time
	timer      *time.Timer
	// again begins a run of the thread with answers; it is set once the thread has run.
	again func([]pregel.Answer)
}

type memoryEvent struct {
	EventRequest
	at time.Time
}

func (m *Memory) eventRun(ctx context.Context, g *graphadapter.Graph, r EventRequest) (EventReply, error) {
	if err := checkEvent(r); err != nil {
		return EventReply{}, err
	}
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return EventReply{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	reply := EventReply{Thread: t.id, Event: r.Name}
	if nodes, again := t.events.taken[r.ID]; again && r.ID != "" {
		reply.Nodes, reply.Repeated = nodes, true
		return reply, nil
	}
	by, err := t.proven(ctx, m, approval.Control{Op: approval.OpEvent, On: r.Name}, asker{by: r.By, token: r.Token})
	if err != nil {
		return EventReply{}, err
	}
	r.By = by.Name()
	under := t.view.Status == StatusRunning || t.pause.held
	if !under && !t.view.rests() {
		return EventReply{}, t.refuse(ErrAnswerRefused, "it takes no event: its run is "+string(t.view.Status))
	}
	if reply.Nodes, err = t.takeEvent(memoryEvent{r, time.Now()}, under, by); err != nil {
		return EventReply{}, err
	}
	if t.events.taken == nil {
		t.events.taken = map[string][]string{}
	}
	if r.ID != "" {
		t.events.taken[r.ID] = reply.Nodes
	}
	return reply, nil
}

// takeEvent gives an event to all who wait for it, or keeps it.
func (t *memoryThread) takeEvent(e memoryEvent, under bool, by trail.Actor) (nodes []string, err error) {
	var answers []pregel.Answer
	if !under {
		for i, q := range t.events.waits {
			if q.Event != e.Name {
				continue
			}
			if err := graphadapter.CheckAnswer(q, pregel.Value(e.Value)); err != nil {
				return nil, badAnswer(t.graph, t.id, q.ID, err)
			}
			answers = append(answers, e.answer(q))
			nodes = append(nodes, t.view.Waits[i].Node)
		}
	}
	noted := trail.Event(by, e.Name, nodes)
	switch {
	case len(answers) > 0:
		t.audit.note(noted)
		t.giveEvents(answers)
	case !t.events.room(len(e.Value)):
		return nil, t.refuse(ErrRunning, fmt.Sprintf("nobody waits for the event %q yet, and it keeps no more than %d events and %d "+
			"bytes of them", e.Name, graphadapter.MaxKeptEvents, graphadapter.MaxKeptBytes))
	case under:
		t.audit.note(noted)
		t.events.sent = append(t.events.sent, e)
	default:
		t.audit.note(noted)
		t.events.kept = append(t.events.kept, e)
		t.view.Kept = t.events.views()
	}
	return nodes, nil
}

func (e memoryEvent) answer(q pregel.Question) pregel.Answer {
	return pregel.Answer{QuestionID: q.ID, Value: pregel.Value(e.Value), By: e.By}
}

func (m *memoryEvents) room(size int) bool {
	for _, e := range slices.Concat(m.kept, m.sent) {
		size += len(e.Value)
	}
	return len(m.kept)+len(m.sent) < graphadapter.MaxKeptEvents && size <= graphadapter.MaxKeptBytes
}

func (m *memoryEvents) views() []KeptEventView {
	var out []KeptEventView
	for _, e := range m.kept {
		out = append(out, KeptEventView{Event: e.Name, By: e.By, At: e.at})
	}
	return out
}

// giveEvents ends waits: the run goes on, unless it is paused.
func (t *memoryThread) giveEvents(answers []pregel.Answer) {
	given := func(id string) bool {
		return slices.ContainsFunc(answers, func(a pregel.Answer) bool { return a.QuestionID == id })
	}
	t.events.waits = slices.DeleteFunc(slices.Clone(t.events.waits), func(q pregel.Question) bool { return given(q.ID) })
	t.view.Waits = slices.DeleteFunc(slices.Clone(t.view.Waits), func(w WaitView) bool { return given(w.ID) })
	if t.view.Paused != nil {
		t.pause.answers = append(t.pause.answers, answers...)
		return
	}
	t.events.again(answers)
}

// attend looks after the waits of a run that has come to rest: events that came before are given, the others are timed.
func (t *memoryThread) attend() {
	t.attendApprovals()
	m := &t.events
	if !t.view.Status.Rests() {
		m.kept, m.sent = append(m.kept, m.sent...), nil
		t.view.Kept = m.views()
		return
	}
	var answers []pregel.Answer
	sent := m.sent
	m.sent = nil
	for _, e := range sent {
		if given := m.match(e, -1, answers); len(given) > 0 {
			answers = append(answers, given...)
			continue
		}
		m.kept = append(m.kept, e)
	}
	for _, e := range slices.Clone(m.kept) {
		if given := m.match(e, 1, answers); len(given) > 0 {
			answers = append(answers, given...)
			m.kept = slices.DeleteFunc(m.kept, func(k memoryEvent) bool { return k.at.Equal(e.at) && k.Name == e.Name })
		}
	}
	t.view.Kept = m.views()
	t.timeWaits()
	if len(answers) > 0 {
		t.giveEvents(answers)
	}
}

// match are the answers that an event gives, to at most that many waits.
func (m *memoryEvents) match(e memoryEvent, most int, given []pregel.Answer) (out []pregel.Answer) {
	for _, q := range m.waits {
		taken := slices.ContainsFunc(given, func(a pregel.Answer) bool { return a.QuestionID == q.ID })
		if q.Event == e.Name && !taken && len(out) != most && graphadapter.CheckAnswer(q, pregel.Value(e.Value)) == nil {
			out = append(out, e.answer(q))
		}
	}
	return out
}

// timeWaits notes when waits are over, and sets the timer for the first.
func (t *memoryThread) timeWaits() {
	m := &t.events
	due, first := map[string]time.Time{}, time.Time{}
	for i, q := range m.waits {
		if q.Timeout == 0 {
			continue
		}
		at, known := m.due[q.ID]
		if !known {
			at = time.Now().Add(time.Duration(q.Timeout) * time.Millisecond)
		}
		due[q.ID], t.view.Waits[i].Due = at, at
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	m.due = due
	if m.timer != nil {
		m.timer.Stop()
	}
	if !first.IsZero() {
		m.timer = time.AfterFunc(time.Until(first), t.expire)
	}
}

// expire ends the waits whose time is over.
func (t *memoryThread) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var answers []pregel.Answer
	for _, q := range t.events.waits {
		if at, timed := t.events.due[q.ID]; timed && !at.After(time.Now()) {
			answers = append(answers, pregel.Answer{QuestionID: q.ID, TimedOut: true})
		}
	}
	switch {
	case len(answers) > 0:
		t.giveEvents(answers)
	case len(t.events.waits) > 0:
		t.timeWaits()
	}
}
