package workflows_test

import (
	"fmt"
	"slices"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/history"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// relaxedModes are those in which a segment begins within a workflow task.
func relaxedModes() map[string]protocol.GraphInput {
	return map[string]protocol.GraphInput{"async": fusedModes["async"], "exit": fusedModes["exit"]}
}

// counts are what a run's history has of its segments.
type counts struct{ tasks, openings, throughs, activities int }

func countsOf(h *historypb.History) (c counts) {
	for _, e := range h.Events {
		if e.GetWorkflowTaskCompletedEventAttributes() != nil {
			c.tasks++
		}
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == segment.SegmentActivity {
			c.activities++
		}
		kind, _ := history.Local(converter.GetDefaultDataConverter(), e)
		if kind == segment.OpeningActivity {
			c.openings++
			if slices.ContainsFunc(returned(e), isSegments) {
				c.throughs++
			}
		}
	}
	return c
}

// TestAShortRunIsOneWorkflowTask, and each answer is one more.
func TestAShortRunIsOneWorkflowTask(t *testing.T) {
	for mode, in := range relaxedModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(chainGraph(), asksOnce())
			in.Input = input(`{}`)
			run := func(graph string) client.WorkflowRun {
				in.Graph = graph
				return r.start(testserver.Queue(t), in)
			}
			inTime(t, func() bool {
				run := run("chain")
				r.finished(run)
				return wantThrough(t, "a run of three supersteps", counts{}, countsOf(r.history(run.GetID())))
			})
			inTime(t, func() bool {
				run := run("asks")
				asked := r.asks(run.GetID(), 1)
				before := r.countsAtRest(run.GetID())
				if _, err := r.update(run.GetID(), answer("yes", asked.Questions[0], `"yes"`)); err != nil {
					t.Fatal(err)
				}
				r.logIs(run, `["one","\"yes\"","end"]`)
				through := wantThrough(t, "a run up to its question", counts{}, before)
				return wantThrough(t, "an answer", before, countsOf(r.history(run.GetID()))) && through
			})
		})
	}
}

// TestATurnIsOneWorkflowTask, with the input that the run begins with and with each of those behind it.
func TestATurnIsOneWorkflowTask(t *testing.T) {
	for mode, in := range relaxedModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(chainGraph())
			var thread, log string
			turns := 0
			turn := func(before counts) bool {
				in.Graph, in.ID, in.Input, in.KeepOpen = "chain", fmt.Sprint("turn-", turns), words(turns), -1
				log += fmt.Sprintf(`"%d","a","b","c",`, turns)
				turns++
				reply, err := r.startOrTurn(thread, in)
				if err != nil || reply.Status != protocol.StatusFinished {
					t.Fatalf("%s is answered with %+v, %v", in.ID, reply, err)
				}
				return wantThrough(t, in.ID, before, countsOf(r.history(thread)))
			}
			inTime(t, func() bool {
				thread, log, turns = testserver.Queue(t), "", 0
				return turn(counts{})
			})
			for range 2 {
				inTime(t, func() bool { return turn(countsOf(r.history(thread))) })
			}
			s := r.until(thread, "the last turn", func(s protocol.State) bool { return s.Status == protocol.StatusFinished })
			if got := string(s.Snapshot.Values["log"]); got != "["+log[:len(log)-1]+"]" {
				t.Errorf("the turns made %s", got)
			}
		})
	}
}

// wantThrough wants one workflow task to have been all of what came behind before. It reports whether the opening was through in its time.
func wantThrough(t *testing.T, what string, before, now counts) bool {
	t.Helper()
	got := counts{now.tasks - before.tasks, now.openings - before.openings, now.throughs - before.throughs, now.activities - before.activities}
	if want := (counts{1, 1, 1, 0}); got != want && got.activities == 0 {
		t.Errorf("%s took %+v, want %+v", what, got, want)
	}
	return got.activities == 0
}

// countsAtRest waits for the end of the workflow task in which the thread was seen to rest: a query may know of it earlier.
func (r *rig) countsAtRest(thread string) (c counts) {
	r.t.Helper()
	var last enumspb.EventType
	await(r.t, "the end of the workflow task", func() bool {
		h := r.history(thread)
		c, last = countsOf(h), h.Events[len(h.Events)-1].GetEventType()
		return last != enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED && last != enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED
	}, func() any { return last.String() })
	return c
}

// inTime repeats what the half second of an opening has to be enough for: it says whether that was so. On a busy machine it is for one
// of several only.
func inTime(t *testing.T, try func() bool) {
	t.Helper()
	for range 40 {
		if try() || t.Failed() {
			return
		}
	}
	t.Error("no opening was through in its time")
}
