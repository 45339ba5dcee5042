package job

import (
	"slices"
	"testing"
	"time"
)

var statuses = []Status{StatusCreated, StatusRunning, StatusFinished, StatusFailed, StatusStopped, "", "LEGACY"}

// TestIllegalMoves holds the only two places that change a status to their tables, which this test writes down again: from
// each status, those that may follow.
func TestIllegalMoves(t *testing.T) {
	ofJobs := map[Status][]Status{
		StatusCreated: {StatusRunning}, StatusRunning: {StatusFinished, StatusFailed, StatusStopped},
		StatusStopped: {StatusRunning}, StatusFailed: {StatusRunning},
	}
	ofSubJobs := map[Status][]Status{
		StatusCreated:  {StatusRunning, StatusFailed, StatusStopped},
		StatusRunning:  {StatusCreated, StatusFinished, StatusFailed, StatusStopped},
		StatusFinished: {StatusCreated}, StatusFailed: {StatusCreated}, StatusStopped: {StatusCreated},
	}
	for _, from := range statuses {
		for _, to := range statuses {
			b := &Board{Status: from}
			if moved := moves(func() { b.move(to, "because") }); moved != slices.Contains(ofJobs[from], to) || moved != (b.Status == to && from != to) {
				t.Errorf("a job that is %s became %s: %v", from, to, moved)
			}
			s := &SubJob{DraftSubJob: DraftSubJob{ID: "s"}, Status: from}
			if moved := moves(func() { b.moveSubJob(s, to, "because") }); moved != slices.Contains(ofSubJobs[from], to) || moved != (s.Status == to && from != to) {
				t.Errorf("a subjob that is %s became %s: %v", from, to, moved)
			}
			s = &SubJob{DraftSubJob: DraftSubJob{ID: "s"}, Status: from, Legacy: true}
			if moves(func() { b.moveSubJob(s, to, "") }) {
				t.Errorf("a subjob that was replaced moved from %s to %s", from, to)
			}
		}
	}
}

// moves reports whether a move went through: one that may not be panics.
func moves(move func()) (moved bool) {
	defer func() { moved = recover() == nil }()
	move()
	return
}

// TestWhatAFinalJobRefuses holds every call that people make against jobs that have ended, and are ending.
func TestWhatAFinalJobRefuses(t *testing.T) {
	now := time.Unix(0, 0)
	for _, status := range []Status{StatusFinished, StatusFailed, StatusStopped} {
		for _, ending := range []bool{false, true} {
			b := &Board{Job: Job{ID: "j"}, Status: status}
			if ending {
				b.Status, b.Ending = StatusRunning, StatusFailed
			}
			for name, err := range map[string]error{
				"stop": b.Stop(Halt{}, now), "fail": b.Fail(Halt{}, now), "retry": b.Retry("s", "", "", now), "decide": b.Decide(Decision{}, now),
				"add": b.AddExpert(Profile{}, "", now), "remove": b.RemoveExpert("", "", now), "raise": b.Raise(Budget{}, "", now),
			} {
				if refused, ok := err.(*RefusedError); !ok || refused.Code != "not_running" || refused.Problem == "" || refused.Do == "" {
					t.Errorf("%s %v: %s: %v", status, ending, name, err)
				}
			}
			if len(b.Events) > 0 {
				t.Errorf("%s: what was refused is an event", status)
			}
		}
	}
}
