package tape

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strconv"
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
	// from is where to begin to hand out, nil for the beginning or once the reader has passed it.
	from *Offset
	// passed are the entries after from that the history had not told when from was made.
	passed passed
	// had is how much the holder of from has of what the tasks under way emit.
	had map[string]Emitted
	// invocation is where the invocation began that is all that is wanted, nil for no bound; begun says that it is here.
	invocation *Offset
	begun      bool
}

// ErrOver says that the invocation is over that was asked for: another one begins.
var ErrOver = errors.New("another invocation begins")

// NewReader begins to read a run. from may be of another run: then it says nothing about this one.
func NewReader(r thread.StreamRequest, run string, from *Offset) *Reader {
	modes := make([]stream.Mode, len(r.Modes))
	for i, m := range r.Modes {
		modes[i] = stream.Mode(m)
	}
	if from != nil && from.Run != run {
		from = nil
	}
	s := &Reader{request: r, shaper: stream.New(r.Thread, modes, r.Subgraphs)}
	s.Enter(run, from)
	if r.Invocation == "" {
		return s
	}
	if at, err := parseOffset(r.Thread, r.Invocation); err == nil { // CheckStream has said so
		s.invocation, s.begun = &at, at.Run != run
	}
	return s
}

// over reports whether an invocation begins that is not the one that was asked for.
func (s *Reader) over(t Entry) bool {
	if s.invocation == nil || s.place.Run == s.invocation.Run && t.At <= s.invocation.Event {
		return false
	}
	was := s.begun
	s.begun = true
	return was
}

// Enter goes over to another run. What the reader knows of the invocation stays: that may go on there.
func (s *Reader) Enter(run string, from *Offset) {
	s.place, s.from, s.passed, s.had = Offset{Run: run, Index: -1}, from, passed{}, nil
	if from != nil {
		s.had = from.emitted
	}
}

// Read returns the parts of the next thing that happened.
func (s *Reader) Read(t Entry) ([]thread.Part, error) {
	switch {
	case t.Began != nil && t.GoesOn:
		s.shaper.Continued(t.Began, t.Durability, t.Base, t.Head)
		return nil, nil
	case t.Began != nil && s.over(t):
		return nil, ErrOver
	case t.Began != nil:
		s.shaper.Began(t.Began, t.Durability)
		return nil, nil
	}
	s.Skip(t)
	if t.Event.Task != nil && t.Event.Kind != pregel.EventInterrupt {
		delete(s.place.emitted, taskName(t.Event.Task.Key()))
	}
	if t.Ahead {
		t.When = time.Now()
	}
	chunks, err := s.chunks(t)
	if s.passing() {
		return s.pass(t, chunks), err
	}
	var parts []thread.Part
	for _, c := range chunks {
		s.place.slot = c.Slot
		if s.from == nil || s.place.behind(*s.from) {
			parts = append(parts, s.part(c, t.When))
		}
	}
	return parts, err
}

// Skip passes over an entry without handing it out. Of one that is ahead the place says how many entries after the last told one it is.
func (s *Reader) Skip(t Entry) {
	if t.Ahead {
		s.place.ahead.add(t)
		s.place.slot = 0
		return
	}
	if t.At != s.place.Event {
		s.place.Event, s.place.Index = t.At, -1
	}
	s.place.Index++
	s.place.slot = 0
}

// Settle passes over an entry that was read ahead and is told now; rest is the number of those that are still ahead.
func (s *Reader) Settle(t Entry, rest int) {
	s.Skip(t)
	s.place.ahead.keep(rest)
}

// Live returns the parts of what a task under way emits, after which the reader has that much of it.
func (s *Reader) Live(e pregel.Event, has Emitted) ([]thread.Part, error) {
	now := time.Now()
	chunks, err := s.chunks(Entry{Event: e, When: now})
	s.place.slot = BehindAll
	s.Have(e.Task.Key(), has)
	var parts []thread.Part
	for _, c := range chunks {
		parts = append(parts, s.part(c, now))
	}
	return parts, err
}

// Hide reads what the reader's holder has already: it counts for what comes after it, and gives no part.
func (s *Reader) Hide(t Entry) error {
	_, err := s.chunks(t)
	return err
}

// Had is how much the holder of the offset that the stream began at has of what a task emits.
func (s *Reader) Had(task string) (Emitted, bool) {
	had, ok := s.had[taskName(task)]
	return had, ok
}

// Have notes how much of what a task emits has been handed out: the offsets of all parts say so until the task's result is read.
func (s *Reader) Have(task string, has Emitted) {
	if s.place.emitted == nil {
		s.place.emitted = map[string]Emitted{}
	}
	s.place.emitted[taskName(task)] = has
}

// BehindAll is a slot after all that one event gives.
const BehindAll = 1 << 30

// Begun reports whether the reader has got to where it hands out parts.
func (s *Reader) Begun() bool {
	return s.from == nil || s.from.ahead.count == 0 && s.reached()
}

// reached reports whether the reader has come to the last entry that the history had told when its offset was made.
func (s *Reader) reached() bool {
	read := s.place
	read.slot = BehindAll
	return s.from == nil || !s.from.behind(read)
}

// Early reports whether the reader takes what a segment has stored before the history tells it. The times that some modes
// show, and where a run stopped that was asked to, are the history's.
func (s *Reader) Early() bool {
	return s.reached() && !slices.ContainsFunc(s.request.Modes, func(m thread.StreamMode) bool {
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

func (s *Reader) part(c stream.Chunk, when time.Time) thread.Part {
	s.place.ahead.freshen()
	p := thread.Part{Offset: s.place.text(s.request.Thread), Mode: thread.StreamMode(c.Mode), Step: c.Step, Data: c.Data, Task: c.Task, Time: when}
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

// streamModes are the modes that can be asked for.
var streamModes = []thread.StreamMode{thread.StreamValues, thread.StreamUpdates, thread.StreamMessages, thread.StreamCustom, thread.StreamTasks, thread.StreamCheckpoints, thread.StreamDebug}

// CheckStream refuses unknown modes and offsets, and puts in the default mode. It returns the offset to begin behind, nil
// for none.
func CheckStream(r *thread.StreamRequest) (*Offset, error) {
	if len(r.Modes) == 0 {
		r.Modes = []thread.StreamMode{thread.StreamUpdates}
	}
	for _, m := range r.Modes {
		if !slices.Contains(streamModes, m) {
			return nil, &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread, Message: "unknown stream mode " + strconv.Quote(string(m)) +
				": there are values, updates, messages, custom, tasks, checkpoints and debug"}
		}
	}
	if r.Invocation != "" {
		if _, err := parseOffset(r.Thread, r.Invocation); err != nil {
			return nil, err
		}
		r.From = cmp.Or(r.From, r.Invocation)
	}
	if r.From == "" {
		return nil, nil
	}
	from, err := parseOffset(r.Thread, r.From)
	return &from, err
}

// FailedStream is a stream that has nothing but an error.
func FailedStream(err error) iter.Seq2[thread.Part, error] {
	return func(yield func(thread.Part, error) bool) { yield(thread.Part{}, err) }
}
