package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"superstep.dev"
)

// followScreen shows a followed run line by line:
//
//	step 1  read_order     ok  31ms
//	step 2  calculate      ok   8ms   → commit_refund
//	step 3  commit_refund  WAITING    q-41c9  Refund 250.00 to order o-7
//
// Lines are written as they come, so columns only ever grow.
type followScreen struct {
	out        io.Writer
	step, node int // widths
	colours    bool
}

// The widths that most graphs need.
const (
	nodeWidth  = 13
	stateWidth = 8
)

func newFollowScreen(out io.Writer) *followScreen {
	return &followScreen{out: out, node: nodeWidth}
}

// show writes the line of one progress, if it is one that people want to see.
func (s *followScreen) show(p superstep.Progress) {
	state, tail, worth := describe(p)
	if !worth {
		return
	}
	step, node := fmt.Sprint(p.Step), clean(p.Node)
	s.step = max(s.step, len(step))
	s.node = max(s.node, utf8.RuneCountInString(node))
	head := fmt.Sprintf("step %-*s  %-*s  ", s.step, step, s.node, node)
	inline, below := splitNotes(p.Notes)
	line := head + paint(s.colours, fmt.Sprintf("%-*s", stateWidth, state)) + "   " + join(inline, tail)
	fmt.Fprintln(s.out, strings.TrimRight(line, " "))
	indent := strings.Repeat(" ", utf8.RuneCountInString(head)+stateWidth+3)
	for _, note := range below {
		fmt.Fprintln(s.out, indent+note)
	}
}

// describe returns the state column and what follows it.
func describe(p superstep.Progress) (state, tail string, worth bool) {
	switch p.State {
	case superstep.ProgressOK:
		return fmt.Sprintf("ok%6s", shortDuration(p.Duration)), arrow(p.Next), true
	case superstep.ProgressFailed:
		return "FAILED", clean(p.Error), true
	case superstep.ProgressWaiting:
		if p.Event != "" {
			return "WAITING", "for event " + clean(p.Event), true
		}
		if p.Question == nil {
			return "WAITING", "", true
		}
		return "WAITING", questionLine(*p.Question), true
	case superstep.ProgressStarted:
		// A first start is followed by its end; a later one explains why the run took so long.
		return "started", fmt.Sprintf("attempt %d", p.Attempt), p.Attempt > 1
	default:
		return clean(p.State), clean(p.Error), true
	}
}

// arrow shows the nodes that a branch or a command chose.
func arrow(next []string) string {
	if len(next) == 0 {
		return ""
	}
	return "→ " + clean(list(next))
}

// join puts two texts behind one another, with space only where both are there.
func join(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	case strings.HasPrefix(b, "→"):
		return a + " " + b
	default:
		return a + "  " + b
	}
}

// splitNotes puts a single short note on the line of its step, all others below it.
func splitNotes(notes []json.RawMessage) (inline string, below []string) {
	const short = 60
	texts := make([]string, len(notes))
	for i, note := range notes {
		texts[i] = clean(valueText(note))
	}
	if len(texts) == 1 && utf8.RuneCountInString(texts[0]) <= short {
		return texts[0], nil
	}
	return "", texts
}

// list joins names.
func list(names []string) string { return strings.Join(names, ", ") }
