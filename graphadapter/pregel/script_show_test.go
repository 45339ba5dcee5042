package pregel_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/graphadapter/pregel"
)

// observe shows an event as one line, behind the namespace when it is a subgraph's.
func (s *session) observe(e pregel.Event) {
	if e.Kind == pregel.EventTick {
		return // what is next, the line of the checkpoint has said
	}
	if e.Namespace != "" {
		fmt.Fprintf(&s.out, "[%s] ", e.Namespace)
	}
	s.out.WriteString(s.eventText(e))
	s.out.WriteByte('\n')
	if e.Kind == pregel.EventCheckpoint && e.Namespace == "" {
		s.records = append(s.records, e.Checkpoint)
	}
}

func (s *session) eventText(e pregel.Event) string {
	path := ""
	if e.Task != nil {
		path = " " + e.Task.Path
	}
	switch e.Kind {
	case pregel.EventTaskStart:
		return "start" + path
	case pregel.EventUpdate:
		if e.Cached {
			return "update" + path + writesText(e.Writes) + " (finished before)"
		}
		return "update" + path + writesText(e.Writes)
	case pregel.EventTaskEnd:
		return "end" + path + endText(e)
	case pregel.EventValues:
		return "values " + valuesText(e.Values())
	case pregel.EventInterrupt:
		if e.Task == nil {
			return "breakpoint"
		}
		return "interrupt" + path + questionsText(e.Questions)
	case pregel.EventCustom:
		return "custom" + path + " " + string(e.Value)
	case pregel.EventLedger:
		return "ledger" + path + " " + string(e.Value)
	case pregel.EventCheckpoint:
		return s.savedText(e)
	}
	return string(e.Kind)
}

// savedText shows a checkpoint: its number in the thread when it is the root's, its step and source, and what is next.
func (s *session) savedText(e pregel.Event) string {
	number := ""
	if e.Namespace == "" {
		number = fmt.Sprintf(" #%d", len(s.records))
	}
	c := e.Checkpoint.Checkpoint
	return fmt.Sprintf("saved%s step %d (%s) next [%s]", number, c.Step, c.Source, strings.Join(s.programAt(e.Nodes).Next(e.Checkpoint), " "))
}

// programAt is the program of the subgraph that the nodes lead to.
func (s *session) programAt(nodes []string) *pregel.Program {
	p := s.program
	for _, node := range nodes {
		for _, n := range p.Spec.Nodes {
			if n.Name == node {
				p, _ = p.Subgraph([]string{n.Subgraph})
			}
		}
	}
	return p
}

func endText(e pregel.Event) string {
	switch {
	case e.Error != nil:
		return fmt.Sprintf(" fails %s: %s", e.Error.Type, e.Error.Message)
	case len(e.Questions) > 0:
		return " asks" + questionsText(e.Questions)
	}
	return writesText(e.Writes)
}

func writesText(writes []pregel.Write) string {
	out := ""
	for _, w := range writes {
		sign := "="
		if w.Overwrite {
			sign = ":="
		}
		out += " " + w.Channel + sign + string(w.Value)
	}
	return out
}

func questionsText(questions []pregel.Question) string {
	out := ""
	for _, q := range questions {
		out += " " + q.ID + "=" + string(q.Value)
	}
	return out
}

func valuesText[V pregel.Value | pregel.Held](values map[string]V) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, fmt.Sprintf("%s=%s", name, values[name]))
	}
	return "{" + strings.Join(out, " ") + "}"
}

// showStatus takes in the tasks that the loop hands out and shows where it stands.
func (s *session) showStatus() {
	s.takeReady()
	switch s.loop.Status() {
	case pregel.StatusRunning:
		fmt.Fprintf(&s.out, "running: %s\n", strings.Join(s.open, " "))
	case pregel.StatusDone:
		fmt.Fprintf(&s.out, "done\n")
	case pregel.StatusWaiting:
		s.out.WriteString("waiting:")
		for _, q := range s.program.OpenQuestions(s.thread) {
			fmt.Fprintf(&s.out, " %s", q.ID)
		}
		s.out.WriteByte('\n')
	case pregel.StatusBreakpoint:
		s.out.WriteString("stopped\n")
	case pregel.StatusDrained:
		fmt.Fprintf(&s.out, "drained: %v\n", s.loop.Err())
	case pregel.StatusFailed:
		fmt.Fprintf(&s.out, "failed: %v\n", s.loop.Err())
	default:
		fmt.Fprintf(&s.out, "status %d\n", s.loop.Status())
	}
}

// show answers the directives that change nothing.
func (s *session) show(d *datadriven.TestData) error {
	switch d.Cmd {
	case "ready":
		s.showReady()
	case "state":
		return s.showState(d)
	case "history":
		s.showHistory()
	case "checkpoint":
		return s.showCheckpoint()
	case "questions":
		for _, q := range s.program.OpenQuestions(s.thread) {
			fmt.Fprintf(&s.out, "%s of %s at step %d: %s", q.ID, q.Node, q.Step, q.Value)
			if q.Event != "" {
				fmt.Fprintf(&s.out, " an event %s in %d ms", q.Event, q.Timeout)
			}
			s.out.WriteByte('\n')
		}
	case "output":
		fmt.Fprintf(&s.out, "%s\n", valuesText(s.loop.Output()))
	case "ledgers":
		for _, l := range s.program.Ledgers(s.thread) {
			fmt.Fprintf(&s.out, "%s at step %d: %s\n", l.Node, l.Step, l.Ledger)
		}
	default:
		return fmt.Errorf("there is no directive %q", d.Cmd)
	}
	return nil
}

func (s *session) showReady() {
	for _, name := range s.open {
		t := s.tasks[name]
		fmt.Fprintf(&s.out, "%s: node %s step %d state %s", name, t.Node, t.Step, valuesText(t.State))
		if t.IsSend() {
			fmt.Fprintf(&s.out, " arg %s", t.Arg)
		}
		for _, a := range t.Answers {
			fmt.Fprintf(&s.out, " answer %s=%s", a.QuestionID, a.Value)
		}
		if t.Ledger != nil {
			fmt.Fprintf(&s.out, " ledger %s", t.Ledger)
		}
		if t.Kept != nil {
			fmt.Fprintf(&s.out, " owns %s", valuesText(t.Kept))
		}
		if t.RouteOnly {
			fmt.Fprintf(&s.out, " routes only after%s", writesText(t.Done.Update))
		}
		if t.Failure != nil {
			fmt.Fprintf(&s.out, " handles %s: %s", t.Failure.Type, t.Failure.Message)
		}
		if t.Retry != nil {
			fmt.Fprintf(&s.out, " again after %d failed: %s", t.Attempt, t.Retry.Message)
		}
		fmt.Fprintf(&s.out, " left %d key %s\n", t.StepsLeft, t.Key())
	}
}
