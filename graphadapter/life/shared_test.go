package life_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/taskrun"
)

// TestSharedScripts runs the scripts in testdata/shared, which the runtimes run too: see TestLifeOnBothRuntimes of package
// superstep. Their results are what every runtime has to show.
//
//	graph           a thread of a graph whose nodes ask side by side, one question a line: see questionOf
//	answer …, event …, pause …, unpause …, drain …, retry, cancel …
//	                what people do, as in TestScripts
//	                a node that calls writes to the outside, and asks then; a final write cannot be undone
//	until KIND      time passes until the audit has another entry of that kind
//	goes            the run goes on as far as it can
//	stands          what the run waits for, and who paused it
//	audit           the entries of the audit since it was looked at last
func TestSharedScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/shared", func(t *testing.T, path string) {
		s, seen := &session{checks: true}, 0
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.out.Reset()
			switch d.Cmd {
			case "graph":
				seen = 0
				return refusedText(errors.Join(s.do(&datadriven.TestData{Cmd: "thread"}), s.asks(d.Input)))
			case "audit":
				lines := s.lines[seen:]
				seen = len(s.lines)
				return times.ReplaceAllString(strings.Join(lines, ""), "…")
			case "stands":
				return s.stood()
			case "goes":
				for s.run.GoesOn() && s.run.Undoing() == nil {
					s.gives()
				}
				return ""
			case "cancel":
				return refusedText(s.do(d)) + s.cancelled()
			case "answer":
				if s.run.Undoing() != nil {
					return refusedText(errors.Join(s.do(d), s.ruled()))
				}
			}
			return refusedText(s.do(d))
		})
	})
}

// times differ from run to run.
var times = regexp.MustCompile(`[0-9-]{10}T[0-9:]{8}Z`)

func refusedText(err error) string {
	var refused *life.Refusal
	if errors.As(err, &refused) {
		return fmt.Sprintf("refused: %s\n", times.ReplaceAllString(refused.Message, "…"))
	}
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	return ""
}

// cancelled ends the run and undoes the writes of its nodes, as a host does.
func (s *session) cancelled() string {
	s.acted(s.run.Cancelled("", s.now))
	s.open = nil
	u := s.run.BeginUndo(s)
	u.Add(taskrun.StandingReply{Effects: s.writes})
	s.undoAll(u)
	return ""
}

func (s *session) ruled() error {
	s.run.Undoing().Rule(s.now)
	s.undoAll(s.run.Undoing())
	return nil
}

// undoAll undoes what can be undone: a write without a key is final.
func (s *session) undoAll(u *life.Undo) {
	for c, ok := u.Next(false, s.now); ok; c, ok = u.Next(false, s.now) {
		undone := taskrun.Undone{State: taskrun.UndoDone}
		if c.Effect.Key == "" {
			undone = taskrun.Undone{State: taskrun.UndoOpen, Reason: "the effect has no Compensate"}
		}
		u.Ended(undone, nil, s.now)
	}
	s.undoNamed, s.undoAsked = "", ""
	for _, q := range s.run.Questions() {
		s.undoNamed, s.undoAsked = q.Node, q.ID
	}
	s.acted(s.run.Actions())
	if !u.Waits() {
		u.Leave(s.now)
		u.End()
		s.acted(s.run.Actions())
	}
}

func (s *session) stood() string {
	var b strings.Builder
	fmt.Fprintln(&b, pausedText(s.run.State.Paused))
	for _, q := range s.run.Questions() {
		fmt.Fprintf(&b, "question %s\n", q.Node)
	}
	for _, q := range s.run.Waits() {
		fmt.Fprintf(&b, "wait %s for %s\n", q.Node, q.Event)
	}
	if c := s.run.Report(); c != nil {
		fmt.Fprintf(&b, "undone %d, left %d\n", c.Undone, len(c.Left))
	}
	for _, k := range s.run.State.Kept {
		fmt.Fprintf(&b, "kept %s by %q\n", k.Name, k.By)
	}
	return b.String()
}
