package tape

import (
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/stream"
	"superstep.dev/thread"
)

// Entry is one thing that happened to a thread: an invocation began, or the engine reported an event.
type Entry struct {
	// at is the position in the run's history, 0 in memory; when is the time there.
	At   int64
	When time.Time
	// began is set when an invocation began, or with goesOn when one went on in a new run; base is then the checkpoint at
	// which it began, and head the one where the thread stands.
	Began      *pregel.Program
	Durability graphadapter.Durability
	GoesOn     bool
	Base, Head string
	Event      pregel.Event
	// ahead says that a segment under way has stored what brings the event about, and the history has not told it yet: it
	// has no position.
	Ahead bool
}

// Reader turns what happened in one run into the parts that one reader asked for. It reads from the run's
// beginning, whatever it hands out: which message is new depends on what came before.
type Reader struct {
	request thread.StreamRequest
	shaper  *stream.Shaper
	place   Offset
	// from is where to begin to hand out, nil for the beginning.
	from *Offset
}

// NewReader begins to read a run. from may be of another run: then it says nothing about this one.
func NewReader(r thread.StreamRequest, run string, from *Offset) *Reader {
	modes := make([]stream.Mode, len(r.Modes))
	for i, m := range r.Modes {
		modes[i] = stream.Mode(m)
	}
	if from != nil && from.Run != run {
		from = nil
	}
	return &Reader{request: r, shaper: stream.New(r.Thread, modes, r.Subgraphs), place: Offset{Run: run, Index: -1}, from: from}
}

// Enter goes over to another run. What the reader knows of the invocation stays: that may go on there.
func (s *Reader) Enter(run string, from *Offset) {
	s.place, s.from = Offset{Run: run, Index: -1}, from
}

// Read returns the parts of the next thing that happened.
func (s *Reader) Read(t Entry) ([]thread.Part, error) {
	switch {
	case t.Began != nil && t.GoesOn:
		s.shaper.Continued(t.Began, t.Durability, t.Base, t.Head)
		return nil, nil
	case t.Began != nil:
		s.shaper.Began(t.Began, t.Durability)
		return nil, nil
	case t.Ahead:
		return s.Live(t.Event)
	}
	s.Skip(t)
	chunks, err := s.chunks(t)
	var parts []thread.Part
	for _, c := range chunks {
		s.place.slot = c.Slot
		if s.from == nil || s.place.behind(*s.from) {
			parts = append(parts, s.part(c))
		}
	}
	return parts, err
}

// Skip passes over something that was handed out before the history told it.
func (s *Reader) Skip(t Entry) {
	if t.Ahead {
		return
	}
	if t.At != s.place.Event {
		s.place.Event, s.place.Index = t.At, -1
	}
	s.place.Index++
	s.place.slot = 0
}

// Live returns the parts of something that the history has not told yet. They have the place of what came before: whoever
// goes on from there gets them once it has.
func (s *Reader) Live(e pregel.Event) ([]thread.Part, error) {
	chunks, err := s.chunks(Entry{Event: e, When: time.Now()})
	s.place.slot = BehindAll
	var parts []thread.Part
	for _, c := range chunks {
		parts = append(parts, s.part(c))
	}
	return parts, err
}

// behindAll is a slot behind all that one event gives.
const BehindAll = 1 << 30

// Begun reports whether the reader has got to where it hands out parts.
func (s *Reader) Begun() bool {
	read := s.place
	read.slot = BehindAll
	return s.from == nil || !s.from.behind(read)
}

// Early reports whether the reader takes what a segment has stored before the history tells it. The times that some modes
// show, and where a run stopped that was asked to, are the history's.
func (s *Reader) Early() bool {
	return s.Begun() && !slices.ContainsFunc(s.request.Modes, func(m thread.StreamMode) bool {
		return m == thread.StreamTasks || m == thread.StreamCheckpoints || m == thread.StreamDebug
	})
}

func (s *Reader) chunks(t Entry) ([]stream.Chunk, error) {
	chunks, err := s.shaper.Shape(t.Event, t.When)
	if err != nil {
		err = &thread.Error{Kind: thread.ErrBadInput, Thread: s.request.Thread, Message: "a part of the stream cannot be shown", Cause: err}
	}
	return chunks, err
}

func (s *Reader) part(c stream.Chunk) thread.Part {
	p := thread.Part{Offset: s.place.text(s.request.Thread), Mode: thread.StreamMode(c.Mode), Step: c.Step, Data: c.Data}
	if c.Namespace != "" {
		p.Namespace = strings.Split(c.Namespace, "|")
	}
	return p
}

// EmissionEvent is what a task emitted, as the engine reports it when the task has ended.
func EmissionEvent(task *pregel.Task, e pregel.Emission) pregel.Event {
	kind := pregel.EventCustom
	switch e.Kind {
	case pregel.EmissionMessage:
		kind = pregel.EventMessage
	case pregel.EmissionReset:
		kind = pregel.EventReset
	}
	return pregel.Event{Kind: kind, Task: task, Namespace: task.Namespace, Step: task.Step, Value: e.Value, Attempt: e.Attempt}
}
