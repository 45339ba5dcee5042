package history

import (
	"maps"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/codec"
)

// Attempt is a task under way, as the server describes its activity.
type Attempt struct {
	// Task is pregel.Task.Key of the task without the thread's branch; of a segment of which no task failed, its activity's id.
	Task string
	// Step is the superstep and Node the node of the task; zero and empty of such a segment.
	Step int
	Node string
	// Number is the attempt that runs or comes next, from 1.
	Number int
	// Failed is why the attempt before failed; empty for the first attempt.
	Failed string
	// RetryAt is when the attempt may begin, by the server's clock; zero when the task does not wait for a time.
	RetryAt time.Time
	// Began is when the activity's execution began; zero when no worker has it.
	Began time.Time
	// Done counts the tasks that ended in the same segment, as far as it has stored them.
	Done int
}

// WithoutBranch is a task's key without the thread's branch.
func WithoutBranch(key string) string { return key[strings.IndexByte(key, '!')+1:] }

// lostWorker is the failure of an attempt whose worker gave no sign of life.
const lostWorker = "its worker was lost"

// Attempts returns the tasks under way among a run's pending activities, in the order of their activities and keys.
func Attempts(from converter.DataConverter, pending []*workflowpb.PendingActivityInfo) []Attempt {
	var all []Attempt
	for _, a := range pending {
		switch a.GetActivityType().GetName() {
		case graphadapter.NotifyActivity, graphadapter.VerifyActivity, graphadapter.ControlActivity, taskrun.CompensateActivity:
			continue // these are no tasks
		}
		if !strings.HasPrefix(a.GetActivityId(), graphadapter.UpdateActivity) {
			all = append(all, attemptsOf(from, a)...)
		}
	}
	return all
}

func attemptsOf(from converter.DataConverter, a *workflowpb.PendingActivityInfo) []Attempt {
	whole := Attempt{Number: 1, Task: a.GetActivityId()}
	if a.GetLastStartedTime() != nil {
		whole.Began = a.GetLastStartedTime().AsTime()
	}
	var kept graphadapter.Progress
	var record []byte
	if a.GetHeartbeatDetails() != nil && from.FromPayloads(a.GetHeartbeatDetails(), &kept, &record) != nil {
		kept, record = graphadapter.Progress{}, nil // it cannot be read here
	}
	if all, err := segment.DecodeRecord(record); err == nil {
		whole.Done = len(all)
	}
	var failed []Attempt
	for _, key := range slices.Sorted(maps.Keys(kept.Tasks)) {
		_, between, err := graphadapter.DecodeCarryOver(kept.Tasks[key])
		if err != nil || between.Failures == 0 {
			continue
		}
		one := whole
		one.Task, one.Number, one.Failed, one.RetryAt = WithoutBranch(key), between.Failures+1, between.Failed, between.RetryAt
		one.Step, one.Node = segment.Delivery{Key: key}.Place()
		failed = append(failed, one)
	}
	if len(failed) > 0 {
		return failed
	}
	if name := a.GetActivityType().GetName(); name != segment.SegmentActivity {
		_, whole.Node, _ = strings.Cut(name, ".")
		whole.Task = whole.Task[:max(strings.LastIndexByte(whole.Task, '/'), 0)] // without the digest
		whole.Step, _ = segment.Delivery{Key: whole.Task}.Place()
	}
	whole.addFailure(from, a)
	return []Attempt{whole}
}

// addFailure adds what the server itself tells of the execution before: a task in exit mode stores nothing.
func (t *Attempt) addFailure(from converter.DataConverter, a *workflowpb.PendingActivityInfo) {
	failure := a.GetLastFailure()
	switch {
	case failure.GetApplicationFailureInfo().GetType() == graphadapter.NodeRetryType:
		t.Failed = codec.Message(from, failure)
	case failure.GetTimeoutFailureInfo() != nil:
		t.Failed = lostWorker
	default:
		return // the task was given back, and runs again as it is
	}
	t.Number = int(a.GetAttempt())
	if at := a.GetNextAttemptScheduleTime(); at != nil {
		t.RetryAt = at.AsTime()
	}
}
