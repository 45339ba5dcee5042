package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// TestALongJobIsContinuedAsANewRun, more than once, without anything being done twice: by its events, and by its bytes, of which each
// run is handed more than it is continued at.
func TestALongJobIsContinuedAsANewRun(t *testing.T) {
	for name, at := range map[string]*protocol.ContinueAt{"by events": always, "by bytes": {Bytes: 1, Life: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var subjobs []string
			for i := range 12 {
				s := fmt.Sprintf("s%d worker", i)
				if i > 0 {
					s += fmt.Sprintf(" s%d", i-1)
				}
				subjobs = append(subjobs, s)
			}
			c := newCrew(t, planOf(subjobs...), map[string]expertFunc{"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) { return success(a.SubJob) }})
			c.lead()
			run := c.begin(protocol.LeaderInput{ContinueAt: at})
			b := c.ends(run, job.StatusFinished)
			if len(c.attempts()) != 12 || made(b)[0] != "p1-s11" {
				t.Errorf("it did %v", c.attempts())
			}
			if runs := c.runs(run.GetID()); len(runs) < 3 || len(runs) > 12+2 {
				t.Errorf("a job of 12 subjobs has %d runs", len(runs))
			}
		})
	}
}

// TestABusyJobIsHeldBack: attempts are always under way, so it starts none any more until it can be continued.
func TestABusyJobIsHeldBack(t *testing.T) {
	t.Parallel()
	var subjobs []string
	for i := range 40 {
		subjobs = append(subjobs, fmt.Sprintf("s%d worker", i))
	}
	c := newCrew(t, planOf(subjobs...), map[string]expertFunc{"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) { return success(a.SubJob) }})
	c.lead()
	run := c.begin(protocol.LeaderInput{ContinueAt: &protocol.ContinueAt{Events: 30, HoldEvents: 60, Life: 1},
		Job: job.Job{Policy: job.Policy{MaxParallel: 4}}})
	first := run.GetRunID()
	c.ends(run, job.StatusFinished)
	did := c.attempts()
	if slices.Sort(did); len(did) != 40 || len(slices.Compact(did)) != 40 {
		t.Errorf("it did %d attempts: %v", len(did), did)
	}
	events := len(c.historyOf(run.GetID(), first).Events)
	if run.GetRunID() == first || events > 120 {
		t.Errorf("its first run has %d events", events)
	}
}
