package screen

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"superstep.dev/thread"
)

// Followed shows a followed run line by line:
//
//	step 1  read_order     ok  31ms
//	step 2  calculate      ok   8ms   → commit_refund
//	step 3  commit_refund  WAITING    q-41c9  Refund 250.00 to order o-7
//
// Lines are written as they come, so columns only ever grow.
type Followed struct {
	mu         sync.Mutex
	screen     *Screen
	step, node int // widths
	live       emitted
	sends      counted
	order      order
}

// The widths that most graphs need.
const (
	nodeWidth  = 13
	stateWidth = 8
)

// Followed begins to show a run.
func (s *Screen) Followed() *Followed { return &Followed{screen: s, node: nodeWidth} }

// Show writes the line of one progress, if it is one that people want to see; a program gets each as JSON.
func (s *Followed) Show(p thread.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.ShowLine(p, func() {
		s.comes(p)
		p.Notes = s.live.rest(p)
		if !s.count(p) {
			s.line(p)
		}
	})
}

func (s *Followed) line(p thread.Progress) {
	state, tail, worth := s.screen.describe(p)
	if !worth {
		return
	}
	step, node := placeOf(p), Clean(p.Node)
	s.endMessage()
	s.showCounted()
	head := s.head(step, node)
	inline, below := splitNotes(p.Notes)
	line := head + s.screen.Status(fmt.Sprintf("%-*s", stateWidth, state)) + "   " + join(inline, tail)
	s.screen.Printf("%s\n", strings.TrimRight(line, " "))
	indent := strings.Repeat(" ", utf8.RuneCountInString(head)+stateWidth+3)
	for _, note := range below {
		s.screen.Printf("%s%s\n", indent, note)
	}
}

// head is the beginning of a line.
func (s *Followed) head(step, node string) string {
	s.step = max(s.step, len(step))
	s.node = max(s.node, utf8.RuneCountInString(node))
	word := "step"
	if step == "" {
		word = "    "
	}
	return fmt.Sprintf("%s %-*s  %-*s  ", word, s.step, step, s.node, node)
}

// placeOf is the superstep of a task: "2.1" in a subgraph that a task of superstep 2 runs, empty when it is not known.
func placeOf(p thread.Progress) string {
	if p.Task != "" && p.Node != "" {
		step, _ := stepAndNode(p.Task)
		return step
	}
	if p.Step == 0 {
		return ""
	}
	return fmt.Sprint(p.Step)
}

// retrying describes a task's next attempt, and why the one before failed.
func (s *Screen) retrying(p thread.Progress) string {
	text := fmt.Sprintf("attempt %d", p.Attempt)
	if wait := p.RetryAt.Sub(s.Now()); wait > 0 {
		text += " in " + Duration(wait) + ", at " + p.RetryAt.In(s.Now().Location()).Format(time.TimeOnly)
	}
	return text + Colon(p.Error)
}

// working describes a task that is under way for long.
func working(p thread.Progress) string {
	text := "for " + Duration(p.Duration)
	if p.Done > 0 && p.Node == "" {
		text += fmt.Sprintf(", %d tasks done", p.Done)
	}
	return text
}

// describe returns the state column and what follows it.
func (s *Screen) describe(p thread.Progress) (state, tail string, worth bool) {
	switch p.State {
	case thread.ProgressOK:
		return fmt.Sprintf("ok%6s", Duration(p.Duration)), arrow(p.Next), true
	case thread.ProgressFailed:
		return "FAILED", Clean(p.Error), true
	case thread.ProgressWaiting:
		if p.Event != "" {
			return "WAITING", "for event " + Clean(p.Event), true
		}
		if p.Question == nil {
			return "WAITING", "", true
		}
		return "WAITING", QuestionLine(*p.Question), true
	case thread.ProgressStarted:
		// A first start is followed by its end; a later one explains why the run took so long.
		return "started", fmt.Sprintf("attempt %d", p.Attempt), p.Attempt > 1
	case thread.ProgressRetrying:
		return p.State, s.retrying(p), true
	case thread.ProgressWorking:
		return p.State, working(p), true
	default:
		return Clean(p.State), Clean(p.Error), true
	}
}

// arrow shows the nodes that a branch or a command chose.
func arrow(next []string) string {
	if len(next) == 0 {
		return ""
	}
	return "→ " + Clean(List(next))
}

// join puts two texts behind one another, with space only where both are there.
func join(a, b string) string {
	if strings.HasPrefix(b, "→") {
		return strings.Trim(a+" "+b, " ")
	}
	return strings.Trim(a+"  "+b, " ")
}

// splitNotes puts a single short note on the line of its step, all others below it.
func splitNotes(notes []json.RawMessage) (inline string, below []string) {
	const short = 60
	texts := make([]string, len(notes))
	for i, note := range notes {
		texts[i] = Clean(ValueText(note))
	}
	if len(texts) == 1 && utf8.RuneCountInString(texts[0]) <= short {
		return texts[0], nil
	}
	return "", texts
}

// ValueText shows a value as people read it.
func ValueText(v json.RawMessage) string { return thread.Question{Value: v}.Text() }

// QuestionLine shows a question in one line.
func QuestionLine(q thread.Question) string { return q.ID + "  " + Clean(ValueText(q.Value)) }
