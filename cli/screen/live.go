package screen

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
)

// emitted is what was shown of nodes while they ran, by task. The zero value is nothing.
type emitted struct {
	tasks map[string]*emitting
	// open is the task whose message is on a line that has no end yet, "" for none.
	open string
}

// emitting is a task under way, or over.
type emitting struct {
	scheduled time.Time
	execution int32
	next      int
	lost      bool // something was missed: the rest comes with the step's end
	over      bool
	// shown is what was shown, of which an execution that follows a lost one says the part from again up to at once more.
	shown     []pregel.Emission
	again, at int
	attempt   int // 0 for the first one
}

// Live shows what a node emits while it runs: a value on a line of its own, the pieces of a message behind each other. What was shown
// does not come again with the step's end. A program gets it from a stream.
func (s *Followed) Live(e live.Emission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.holds(e) {
		s.emit(e)
	}
}

// emit shows one emission.
func (s *Followed) emit(e live.Emission) {
	t := s.live.tasks[e.Task]
	if t == nil {
		if t = (&emitting{}); s.live.tasks == nil {
			s.live.tasks = map[string]*emitting{}
		}
		s.live.tasks[e.Task] = t
	}
	if !t.news(e) {
		return
	}
	if e.Emission.Kind == pregel.EmissionMessage {
		s.piece(e)
		return
	}
	s.endMessage()
	head := s.head(stepAndNode(e.Task))
	s.screen.Printf("%s%s   %s\n", head, s.screen.Status(fmt.Sprintf("%-*s", stateWidth, "…")), Clean(ValueText(json.RawMessage(e.Emission.Value))))
}

// news takes in an emission; it reports whether it is to be shown.
func (t *emitting) news(e live.Emission) bool {
	switch {
	case t.over || e.Scheduled.Before(t.scheduled) || e.Scheduled.Equal(t.scheduled) && e.Execution < t.execution:
		return false
	case e.Scheduled.After(t.scheduled) || e.Execution > t.execution:
		t.scheduled, t.execution, t.next, t.lost, t.at = e.Scheduled, e.Execution, 0, false, t.again
	}
	if e.Sequence != t.next || t.lost {
		t.lost = t.lost || e.Sequence > t.next
		return false
	}
	t.next++
	switch {
	case e.Emission.Kind == pregel.EmissionReset && e.Emission.Attempt == max(t.attempt, 1):
		t.at = t.again // the same attempt again
		return false
	case e.Emission.Kind == pregel.EmissionReset: // a failed attempt's values stay in what its step brings
		t.attempt, t.again, t.at = e.Emission.Attempt, len(t.shown), len(t.shown)
		return false
	case t.at < len(t.shown) && same(t.shown[t.at], e.Emission):
		t.at++
		return false
	}
	t.shown = append(t.shown[:t.at:t.at], e.Emission)
	t.at++
	return true
}

func same(a, b pregel.Emission) bool {
	return a.Kind == b.Kind && ValueText(json.RawMessage(a.Value)) == ValueText(json.RawMessage(b.Value))
}

// rest are the notes of a step's end that were not shown while it ran.
func (s *emitted) rest(p thread.Progress) []json.RawMessage {
	t := s.tasks[p.Task]
	if t == nil || p.State == thread.ProgressStarted {
		return p.Notes
	}
	t.over = true
	values := slices.DeleteFunc(t.shown, func(e pregel.Emission) bool { return e.Kind == pregel.EmissionMessage })
	t.shown = nil
	for i, v := range values {
		if i >= len(p.Notes) || !same(v, pregel.Emission{Value: pregel.Value(p.Notes[i])}) {
			return p.Notes
		}
	}
	return p.Notes[len(values):]
}

// piece shows a piece of a message that an assistant says.
func (s *Followed) piece(e live.Emission) {
	var m struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	if json.Unmarshal(e.Emission.Value, &m) != nil || m.Role != "assistant" {
		return
	}
	text, ok := m.Content.(string)
	if !ok || text == "" {
		return
	}
	if s.live.open != e.Task {
		s.endMessage()
		s.screen.Printf("%s%s   ", s.head(stepAndNode(e.Task)), s.screen.Status(fmt.Sprintf("%-*s", stateWidth, "…")))
		s.live.open = e.Task
	}
	s.screen.Printf("%s", spaced(text))
}

// spaced is a text for a line, with the spaces at its ends: pieces are put behind each other.
func spaced(text string) string {
	clean := Clean(text)
	trimmed := strings.TrimFunc(text, unicode.IsSpace)
	if trimmed == "" {
		return " "
	}
	if !strings.HasPrefix(text, trimmed) {
		clean = " " + clean
	}
	if !strings.HasSuffix(text, trimmed) {
		clean += " "
	}
	return clean
}

// endMessage ends the line of a message.
func (s *Followed) endMessage() {
	if s.live.open != "" {
		s.screen.Printf("\n")
		s.live.open = ""
	}
}

// Close ends what is on the screen: nothing comes any more.
func (s *Followed) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
	s.endMessage()
	s.showCounted()
}

// stepAndNode are what the key of a task says: step 2 of "2/agent", step 2.1 of "2/team|1/agent" within a subgraph.
func stepAndNode(key string) (step, node string) {
	var steps []string
	for place := range strings.SplitSeq(key[strings.IndexByte(key, '!')+1:], "|") {
		number, path, _ := strings.Cut(place, "/")
		steps = append(steps, number)
		node, _, _ = strings.Cut(path, ":")
	}
	return Clean(strings.Join(steps, ".")), Clean(node)
}
