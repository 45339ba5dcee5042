package job

import (
	"slices"
	"time"
)

// Event is something that happened to a job, for those who follow it.
type Event struct {
	Seq  int64     `json:"seq"` // counts from 1, without gaps, over the whole job
	Time time.Time `json:"time"`
	// Kind is one of: submitted, planning, plan_refused, planned, approving, approved, edited, rejected, started, finished,
	// retrying, reopened, stale, replaced, failed, failing, stopping, stopped, recovered, over_budget, raised, expert_added,
	// expert_removed, job_finished, job_failed.
	Kind    string `json:"kind"`
	SubJob  string `json:"subjob,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Expert  string `json:"expert,omitempty"`
	// Text says it in a sentence: the lesson, the reason, what was wrong.
	Text string `json:"text,omitempty"`
}

// MaxEvents is how many events of a job are kept at most, and MaxEventBytes what they may take as JSON.
const (
	MaxEvents     = 1000
	MaxEventBytes = 96 << 10
)

// maxEventText bounds the text of an event, in bytes as JSON: the whole text is with the subjob or its attempt.
const maxEventText = 256

// tell notes an event, and forgets the oldest ones when there are too many.
func (b *Board) tell(now time.Time, e Event) {
	e.Seq, e.Time, e.Text = b.lastEvent()+1, now, clip(e.Text, maxEventText)
	b.Events = append(b.Events, e)
	b.EventBytes += e.size()
	drop := max(0, len(b.Events)-MaxEvents)
	for _, old := range b.Events[:drop] {
		b.EventBytes -= old.size()
	}
	for ; b.EventBytes > MaxEventBytes; drop++ {
		b.EventBytes -= b.Events[drop].size()
	}
	b.Events = b.Events[drop:]
}

// tellOf notes an event of a subjob.
func (b *Board) tellOf(now time.Time, kind string, s *SubJob, text string) {
	b.tell(now, Event{Kind: kind, SubJob: s.ID, Attempt: s.Attempts, Expert: s.Expert, Text: text})
}

// size is how many bytes an event takes in JSON, at most.
func (e Event) size() int {
	return 128 + len(e.Kind) + len(e.SubJob) + quoted(e.Expert) + quoted(e.Text)
}

func (b *Board) lastEvent() int64 {
	if len(b.Events) == 0 {
		return 0
	}
	return b.Events[len(b.Events)-1].Seq
}

// EventsAfter are the events behind the one of that number, oldest first; 0 is all. Those that the board has forgotten are
// missing: then the first one's number is not the next.
func (b *Board) EventsAfter(seq int64) []Event {
	at, _ := slices.BinarySearchFunc(b.Events, seq+1, func(e Event, seq int64) int { return int(e.Seq - seq) })
	return slices.Clone(b.Events[at:])
}
