package superstep

import (
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

// skip passes over something that was handed out live.
func (s *streamReader) skip(t taped) {
	if t.at != s.place.event {
		s.place.event, s.place.index = t.at, -1
	}
	s.place.index++
	s.place.slot = 0
}

// live returns the parts of something that came live. They have the place of what came before: whoever goes on from
// there gets them with the result.
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
func (s *streamReader) begun() bool { return s.from == nil || !s.from.behind(s.place) }

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
