package superstep

import (
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/stream"
)

// taped is one thing that happened to a thread: an invocation began, or the engine reported an event.
type taped struct {
	// at is the position in the run's history, 0 in memory; when is the time there.
	at   int64
	when time.Time
	// began is set when an invocation began, or with goesOn when one went on in a new run; base is then the checkpoint at
	// which it began, and head the one where the thread stands.
	began      *pregel.Program
	durability graphadapter.Durability
	goesOn     bool
	base, head string
	event      pregel.Event
	// ahead says that a segment under way has stored what brings the event about, and the history has not told it yet: it
	// has no position.
	ahead bool
}

// streamReader turns what happened in one run into the parts that one reader asked for. It reads from the run's
// beginning, whatever it hands out: which message is new depends on what came before.
type streamReader struct {
	request StreamRequest
	shaper  *stream.Shaper
	place   streamOffset
	// from is where to begin to hand out, nil for the beginning.
	from *streamOffset
}

// newStreamReader begins to read a run. from may be of another run: then it says nothing about this one.
func newStreamReader(r StreamRequest, run string, from *streamOffset) *streamReader {
	modes := make([]stream.Mode, len(r.Modes))
	for i, m := range r.Modes {
		modes[i] = stream.Mode(m)
	}
	if from != nil && from.run != run {
		from = nil
	}
	return &streamReader{request: r, shaper: stream.New(r.Thread, modes, r.Subgraphs), place: streamOffset{run: run, index: -1}, from: from}
}

// enter goes over to another run. What the reader knows of the invocation stays: that may go on there.
func (s *streamReader) enter(run string, from *streamOffset) {
	s.place, s.from = streamOffset{run: run, index: -1}, from
}

// read returns the parts of the next thing that happened.
func (s *streamReader) read(t taped) ([]StreamPart, error) {
	switch {
	case t.began != nil && t.goesOn:
		s.shaper.Continued(t.began, t.durability, t.base, t.head)
		return nil, nil
	case t.began != nil:
		s.shaper.Began(t.began, t.durability)
		return nil, nil
	case t.ahead:
		return s.live(t.event)
	}
	s.skip(t)
	chunks, err := s.chunks(t)
	var parts []StreamPart
	for _, c := range chunks {
		s.place.slot = c.Slot
		if s.from == nil || s.place.behind(*s.from) {
			parts = append(parts, s.part(c))
		}
	}
	return parts, err
}

// skip passes over something that was handed out before the history told it.
func (s *streamReader) skip(t taped) {
	if t.ahead {
		return
	}
	if t.at != s.place.event {
		s.place.event, s.place.index = t.at, -1
	}
	s.place.index++
	s.place.slot = 0
}

// live returns the parts of something that the history has not told yet. They have the place of what came before: whoever
// goes on from there gets them once it has.
func (s *streamReader) live(e pregel.Event) ([]StreamPart, error) {
	chunks, err := s.chunks(taped{event: e, when: time.Now()})
	s.place.slot = behindAll
	var parts []StreamPart
	for _, c := range chunks {
		parts = append(parts, s.part(c))
	}
	return parts, err
}

// behindAll is a slot behind all that one event gives.
const behindAll = 1 << 30

// begun reports whether the reader has got to where it hands out parts.
func (s *streamReader) begun() bool {
	read := s.place
	read.slot = behindAll
	return s.from == nil || !s.from.behind(read)
}

// early reports whether the reader takes what a segment has stored before the history tells it. The times that some modes
// show, and where a run stopped that was asked to, are the history's.
func (s *streamReader) early() bool {
	return s.begun() && !slices.ContainsFunc(s.request.Modes, func(m StreamMode) bool {
		return m == StreamTasks || m == StreamCheckpoints || m == StreamDebug
	})
}

func (s *streamReader) chunks(t taped) ([]stream.Chunk, error) {
	chunks, err := s.shaper.Shape(t.event, t.when)
	if err != nil {
		err = &Error{Kind: ErrBadInput, Thread: s.request.Thread, Message: "a part of the stream cannot be shown", Cause: err}
	}
	return chunks, err
}

func (s *streamReader) part(c stream.Chunk) StreamPart {
	p := StreamPart{Offset: s.place.text(s.request.Thread), Mode: StreamMode(c.Mode), Step: c.Step, Data: c.Data}
	if c.Namespace != "" {
		p.Namespace = strings.Split(c.Namespace, "|")
	}
	return p
}
