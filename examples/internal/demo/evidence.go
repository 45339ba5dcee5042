package demo

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// Recorded is what a task under way has on record of its calls, from the heartbeat that the server stored: nothing while
// there is none. The task is named by its graph and node: "refund.commit_refund".
func (s *Stage) Recorded(ctx context.Context, thread, runID, task string) ([]ledger.Entry, error) {
	described, err := s.Temporal.DescribeWorkflowExecution(ctx, thread, runID)
	if err != nil {
		return nil, fmt.Errorf("look at the run: %w", err)
	}
	for _, pending := range described.GetPendingActivities() {
		if pending.GetActivityType().GetName() != task || pending.GetHeartbeatDetails() == nil {
			continue
		}
		var progress graphadapter.Progress
		if err := s.decode(pending.GetHeartbeatDetails(), &progress); err != nil {
			return nil, err
		}
		for _, stored := range progress.Tasks { // an activity of a task of its own has one
			return Ledger(stored)
		}
	}
	return nil, nil
}

// Ledger reads what a task has done outside, as it is stored.
func Ledger(stored pregel.Value) ([]ledger.Entry, error) {
	entries, err := graphadapter.DecodeLedger(stored)
	if err != nil {
		return nil, fmt.Errorf("read what the run did outside: %w", err)
	}
	return entries, nil
}

// Execution is one task of a run as its history has it, with the attempt that ended it.
type Execution struct {
	Node    string
	Attempt int32
	Began   time.Time // of that attempt
	Asked   bool      // it ended with a question
	Ledger  []ledger.Entry
}

// Executions reads the finished tasks of a run, in their order, from its recorded history.
func (s *Stage) Executions(ctx context.Context, thread, runID string) ([]Execution, error) {
	recorded, err := s.Tail.All(ctx, thread, runID)
	if err != nil {
		return nil, fmt.Errorf("read the history of the run: %w", err)
	}
	byID := map[int64]*Execution{} // by the event that scheduled them
	var ended []Execution
	for _, e := range recorded {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			var request graphadapter.NodeRequest
			if err := s.decode(a.GetInput(), &request); err != nil {
				return nil, err
			}
			byID[e.GetEventId()] = &Execution{Node: request.Task.Node}
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil && byID[a.GetScheduledEventId()] != nil {
			one := byID[a.GetScheduledEventId()]
			one.Attempt, one.Began = a.GetAttempt(), e.GetEventTime().AsTime()
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && byID[a.GetScheduledEventId()] != nil {
			var outcome pregel.Outcome
			if err := s.decode(a.GetResult(), &outcome); err != nil {
				return nil, err
			}
			one := byID[a.GetScheduledEventId()]
			one.Asked = len(outcome.Questions) > 0
			if one.Ledger, err = Ledger(outcome.Ledger); err != nil {
				return nil, err
			}
			ended = append(ended, *one)
		}
	}
	return ended, nil
}

func (s *Stage) decode(stored *commonpb.Payloads, into any) error {
	if err := s.Tail.Converter.FromPayloads(stored, into); err != nil {
		return fmt.Errorf("read the record of the run: %w", err)
	}
	return nil
}
