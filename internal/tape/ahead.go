package tape

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"superstep.dev/graphadapter/stream"
	"superstep.dev/thread"
)

// What names an entry, so that two readings of a run can be compared.
func (t Entry) What() string {
	what := fmt.Sprintf("%t %v %d %q", t.Began != nil, t.Event.Kind, t.Event.Step, t.Event.Namespace)
	if t.Event.Task != nil {
		what += " " + t.Event.Task.Key()
	}
	if t.Event.Checkpoint != nil {
		what += " " + t.Event.Checkpoint.Checkpoint.ID
	}
	return what
}

// ahead is how many entries a reader is ahead of what the history has told, and which entries these are.
type ahead struct {
	count  int
	digest uint32
	// sums are the entries' own digests, of which digest is made; stale says that it has to be made anew.
	sums  []uint32
	stale bool
}

// add adds an entry that is read before it is told.
func (a *ahead) add(t Entry) {
	sum := crc32.ChecksumIEEE([]byte(t.What()))
	a.count, a.digest, a.sums = a.count+1, mixDigests(a.digest, sum), append(a.sums, sum)
}

// keep keeps the last n entries: those before are told now.
func (a *ahead) keep(n int) {
	a.count, a.sums, a.stale = n, a.sums[len(a.sums)-n:], true
}

// freshen makes the digest anew where it is stale.
func (a *ahead) freshen() {
	if !a.stale {
		return
	}
	a.digest, a.stale = 0, false
	for _, sum := range a.sums {
		a.digest = mixDigests(a.digest, sum)
	}
}

func mixDigests(digest, sum uint32) uint32 {
	return crc32.Update(digest, crc32.IEEETable, binary.BigEndian.AppendUint32(nil, sum))
}

// passing reports whether the entry that was read last is one that the offset's holder has read ahead: it comes after the last one that
// was told when the offset was made.
func (s *Reader) passing() bool {
	if s.from == nil || s.from.ahead.count == 0 {
		return false
	}
	base := *s.from
	base.slot = BehindAll
	return s.place.ahead.count > 0 && s.reached() || s.place.behind(base)
}

// passed are the entries that the offset's holder has read ahead, as they come again.
type passed struct {
	ahead
	// parts are those of each entry. They are handed out if the run went another way since, because then the holder's do not count.
	parts [][]thread.Part
}

// pass passes over an entry that the offset's holder has read ahead. It returns the parts that the holder does not have, once all these
// entries have come.
func (s *Reader) pass(t Entry, chunks []stream.Chunk) []thread.Part {
	var parts, rest []thread.Part
	for _, c := range chunks {
		s.place.slot = c.Slot
		parts = append(parts, s.part(c, t.When))
		if c.Slot > s.from.slot {
			rest = append(rest, parts[len(parts)-1])
		}
	}
	s.passed.add(t)
	s.passed.parts = append(s.passed.parts, parts)
	switch {
	case s.passed.count < s.from.ahead.count:
		return nil
	case s.passed.digest != s.from.ahead.digest:
		return s.Left()
	}
	s.from, s.passed = nil, passed{}
	return rest
}

// Left returns the parts that were kept back because the offset's holder seemed to have them, when the run has ended without coming to
// where the holder was: it went another way, so the holder's parts do not count.
func (s *Reader) Left() []thread.Part {
	parts := slices.Concat(s.passed.parts...)
	if s.passed.count > 0 {
		s.from, s.had = nil, nil
	}
	s.passed = passed{}
	return parts
}

// Retract forgets the newest n entries that were read ahead: the run went another way.
func (s *Reader) Retract(n int) {
	s.place.ahead = ahead{}
	if s.passed.count > 0 {
		kept := max(0, s.passed.count-n)
		s.passed.count, s.passed.sums, s.passed.parts, s.passed.stale = kept, s.passed.sums[:kept], s.passed.parts[:kept], true
		s.passed.freshen()
	}
}
