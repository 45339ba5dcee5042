package life_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/graphadapter/life"
)

// TestSharedScripts runs the scripts in testdata/shared, which the runtimes run too: see TestLifeOnBothRuntimes of package
// superstep. Their results are what every runtime has to show.
//
//	graph           a thread of a graph whose nodes ask side by side, one question a line: see questionOf
//	answer …, event …, pause …, unpause …, drain …, retry, cancel …
//	                what people do, as in TestScripts
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
				for s.run.GoesOn() {
					s.gives()
				}
				return ""
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

func (s *session) stood() string {
	var b strings.Builder
	fmt.Fprintln(&b, pausedText(s.run.State.Paused))
	for _, q := range s.run.Questions() {
		fmt.Fprintf(&b, "question %s\n", q.Node)
	}
	for _, q := range s.run.Waits() {
		fmt.Fprintf(&b, "wait %s for %s\n", q.Node, q.Event)
	}
	for _, k := range s.run.State.Kept {
		fmt.Fprintf(&b, "kept %s by %q\n", k.Name, k.By)
	}
	return b.String()
}
