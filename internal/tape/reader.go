package tape

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
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
	// from is where to begin to hand out, nil for the beginning.
	from *Offset
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
	s := &Reader{request: r, shaper: stream.New(r.Thread, modes, r.Subgraphs), place: Offset{Run: run, Index: -1}, from: from}
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
	s.place, s.from = Offset{Run: run, Index: -1}, from
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
	case t.Ahead:
		return s.Live(t.Event)
	}
	s.Skip(t)
	chunks, err := s.chunks(t)
	var parts []thread.Part
	for _, c := range chunks {
		s.place.slot = c.Slot
		if s.from == nil || s.place.behind(*s.from) {
			parts = append(parts, s.part(c, t.When))
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
	now := time.Now()
	chunks, err := s.chunks(Entry{Event: e, When: now})
	s.place.slot = BehindAll
	var parts []thread.Part
	for _, c := range chunks {
		parts = append(parts, s.part(c, now))
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

func (s *Reader) part(c stream.Chunk, when time.Time) thread.Part {
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

// Offset is the place behind one part of a stream: in which run, at which of its events, the number of what
// happened there, and the place among what that gives to stream.
type Offset struct {
	Run         string
	Event       int64
	Index, slot int
}

// offsetVersion is the first element of an offset's text.
const offsetVersion = "1"

// maxOffset bounds the text of an offset, in bytes.
const maxOffset = 300

// text is the offset as readers keep it. It ends with a check, so that one of another thread is not taken.
func (o Offset) text(thread string) string {
	body := fmt.Sprintf("%s/%s/%d/%d.%d", offsetVersion, o.Run, o.Event, o.Index, o.slot)
	return body + "/" + offsetCheck(thread, body)
}

func offsetCheck(thread, body string) string {
	sum := sha256.Sum256([]byte(thread + "\n" + body))
	return hex.EncodeToString(sum[:4])
}

// parseOffset reads the text of an offset of that thread.
func parseOffset(threadID, text string) (Offset, error) {
	refuse := func(why string) (Offset, error) {
		return Offset{}, &thread.Error{Kind: thread.ErrBadInput, Thread: threadID,
			Message: "this is no offset of a stream of thread " + strconv.Quote(threadID) + ": " + why,
			Do:      "Give the offset of a part that the stream gave, as it was, or none to begin with the newest run"}
	}
	if len(text) > maxOffset {
		return refuse(fmt.Sprintf("it has %d bytes, an offset has at most %d", len(text), maxOffset))
	}
	if version, _, _ := strings.Cut(text, "/"); version != offsetVersion {
		return refuse("its version is not " + offsetVersion)
	}
	cut := strings.LastIndexByte(text, '/')
	if offsetCheck(threadID, text[:cut]) != text[cut+1:] {
		return refuse("it is of another thread, or damaged")
	}
	// What passes the check was made here, or by somebody who knows how.
	var o Offset
	parts := strings.Split(text[:cut], "/")
	if len(parts) != 4 {
		return refuse("it is damaged")
	}
	index, slot, _ := strings.Cut(parts[3], ".")
	var errs [3]error
	o.Run = parts[1]
	o.Event, errs[0] = strconv.ParseInt(parts[2], 10, 64)
	o.Index, errs[1] = strconv.Atoi(index)
	o.slot, errs[2] = strconv.Atoi(slot)
	if errs != [3]error{} || o.Run == "" {
		return refuse("it is damaged")
	}
	return o, nil
}

// Behind is the offset behind all that a run had streamed when its history had that many events.
func Behind(threadID, run string, events int64) string {
	return Offset{Run: run, Event: events, Index: math.MaxInt32, slot: BehindAll}.text(threadID)
}

// behind reports whether o comes after other in one run.
func (o Offset) behind(other Offset) bool {
	return cmp.Or(cmp.Compare(o.Event, other.Event), cmp.Compare(o.Index, other.Index), cmp.Compare(o.slot, other.slot)) > 0
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
