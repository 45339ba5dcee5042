package job_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/job"
)

// TestScripts runs the scripts in testdata/script: each drives a board by hand and shows the events that every step led
// to, and where the job stands. After an intended change, -rewrite writes the new results; read the diff.
//
//	job [FIELD=…]           a job begins; the fields are those of jobOf, the input is the experts, one a line
//	ready                   what is to be done now
//	plan                    the planner answers: "id expert dependency… | goal=… | context=…", one subjob a line
//	bad, lost               the planner's answer is of no use; the planner cannot be reached
//	report                  attempts end: "id/attempt STATUS | output=… | lesson=… | …", see reportOf
//	wait D                  time passes
//	stop, fail, recover, retry, decide, add, remove, raise    what people do
//	show, answer            there is to see
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := new(session)
		datadriven.RunTest(t, path, s.directive)
	})
}

// TestScriptsWithStoredBoards runs the same scripts, storing and reading back the board before every step: what a board
// does next may depend on nothing that is not stored.
func TestScriptsWithStoredBoards(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := &session{stored: true}
		datadriven.RunTest(t, path, s.directive)
	})
}

// session is the state of one script.
type session struct {
	stored bool
	board  *job.Board
	now    time.Time
	seen   int64 // the last event that was shown
	out    strings.Builder
}

func (s *session) directive(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.out.Reset()
	if s.stored && s.board != nil {
		s.board = s.board.Copy()
	}
	err := s.do(d)
	if s.board != nil {
		s.showEvents()
	}
	refused := new(job.RefusedError)
	switch {
	case errors.As(err, &refused):
		fmt.Fprintf(&s.out, "refused: %s: %v\n", refused.Code, err)
	case err != nil:
		fmt.Fprintf(&s.out, "error: %v\n", err)
	case d.Cmd != "show" && d.Cmd != "answer":
		s.showStatus()
	}
	return s.out.String()
}

func (s *session) do(d *datadriven.TestData) error {
	switch d.Cmd {
	case "job":
		return s.begin(d)
	case "wait":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		s.now = s.now.Add(by)
		return err
	case "ready":
		s.showWork(s.board.Ready(s.now))
		return nil
	case "show":
		s.show()
		return nil
	case "answer":
		for _, in := range s.board.Answer() {
			fmt.Fprintf(&s.out, "%s by %s: %s\n", in.SubJob, in.Expert, in.Text)
		}
		return nil
	case "plan", "bad", "lost", "report":
		return s.happened(d)
	}
	return s.steer(d)
}

// begin makes a board.
func (s *session) begin(d *datadriven.TestData) error {
	j, err := jobOf(d)
	if err != nil {
		return err
	}
	names := strings.Fields(d.Input)
	if len(names) == 0 {
		names = []string{"loader", "analyst", "critic", "writer"}
	}
	board, err := job.New(j, experts(names...), start)
	if err == nil {
		s.board, s.now, s.seen = board, start, 0
	}
	return err
}

// happened tells the board what the planner or the experts did.
func (s *session) happened(d *datadriven.TestData) error {
	switch d.Cmd {
	case "plan":
		s.board.Planned(draftOf(d.Input), nil, s.now)
	case "bad":
		s.board.Planned(job.Draft{Usage: job.Usage{Tokens: 7}}, fmt.Errorf("wrapped: %w", &job.BadPlanError{Problem: d.Input}), s.now)
	case "lost":
		s.board.Planned(job.Draft{}, errors.New(d.Input), s.now)
	case "report":
		for _, line := range lines(d.Input) {
			a, m, err := reportOf(line)
			if err != nil {
				return err
			}
			s.board.Reported(a, m, s.now)
		}
	}
	return nil
}

// steer tells the board what people want.
func (s *session) steer(d *datadriven.TestData) error {
	arg := func(name string) string { return argOf(d, name) }
	switch d.Cmd {
	case "stop":
		return s.board.Stop(job.Halt{SubJob: arg("subjob"), Reason: d.Input, By: arg("by")}, s.now)
	case "fail":
		return s.board.Fail(job.Halt{SubJob: arg("subjob"), Reason: d.Input, By: arg("by")}, s.now)
	case "recover":
		r := job.Recover{Lesson: d.Input, By: arg("by")}
		if again := arg("again"); again != "" {
			r.Again = strings.Split(again, "+")
		}
		return s.board.Recover(r, s.now)
	case "retry":
		return s.board.Retry(arg("subjob"), d.Input, arg("by"), s.now)
	case "add":
		return s.board.AddExpert(experts(arg("expert"))[0], arg("by"), s.now)
	case "remove":
		return s.board.RemoveExpert(arg("expert"), arg("by"), s.now)
	case "raise":
		return s.board.Raise(budgetOf(d), arg("by"), s.now)
	case "decide":
		decision := job.Decision{PlanVersion: number(arg("version")), Verdict: arg("verdict"), By: arg("by"), Reason: d.Input}
		if decision.Verdict == "edit" {
			plan := draftOf(d.Input)
			decision.Plan, decision.Reason = &plan, ""
		}
		return s.board.Decide(decision, s.now)
	}
	return fmt.Errorf("no directive %s", d.Cmd)
}
