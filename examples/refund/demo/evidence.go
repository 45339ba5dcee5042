package main

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// pendingEffect returns the write that the node under test has on record, from the heartbeat that the server stored;
// the zero Entry while there is none.
func (d *refunding) pendingEffect(ctx context.Context) (ledger.Entry, error) {
	described, err := d.Temporal.DescribeWorkflowExecution(ctx, thread, d.runID)
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("look at the run: %w", err)
	}
	for _, pending := range described.GetPendingActivities() {
		if pending.GetActivityType().GetName() != "refund."+node || pending.GetHeartbeatDetails() == nil {
			continue
		}
		var details struct {
			Ledger pregel.Value `json:"ledger"`
		}
		if err := d.decode(pending.GetHeartbeatDetails(), &details); err != nil {
			return ledger.Entry{}, err
		}
		entries, err := effects(details.Ledger)
		if err != nil {
			return ledger.Entry{}, err
		}
		if len(entries) > 0 {
			return entries[0], nil
		}
	}
	return ledger.Entry{}, nil
}

// effects are the writes to the outside in a stored ledger.
func effects(stored pregel.Value) ([]ledger.Entry, error) {
	entries, err := graphadapter.DecodeLedger(stored)
	if err != nil {
		return nil, fmt.Errorf("read what the run did outside: %w", err)
	}
	var writes []ledger.Entry
	for _, e := range entries {
		if e.Kind == ledger.KindEffect {
			writes = append(writes, e)
		}
	}
	return writes, nil
}

// execution is one task of the run as its history has it, with the attempt that ended it.
type execution struct {
	node    string
	attempt int32
	began   time.Time // of that attempt
	asked   bool      // it ended with a question
}

// executions reads the finished tasks of the run, in their order, from its recorded history.
func (d *refunding) executions(ctx context.Context) ([]execution, error) {
	recorded, err := d.Tail.All(ctx, thread, d.runID)
	if err != nil {
		return nil, fmt.Errorf("read the history of the run: %w", err)
	}
	byID := map[int64]*execution{} // by the event that scheduled them
	var ended []execution
	for _, e := range recorded {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			var request graphadapter.NodeRequest
			if err := d.decode(a.GetInput(), &request); err != nil {
				return nil, err
			}
			byID[e.GetEventId()] = &execution{node: request.Task.Node}
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil && byID[a.GetScheduledEventId()] != nil {
			one := byID[a.GetScheduledEventId()]
			one.attempt, one.began = a.GetAttempt(), e.GetEventTime().AsTime()
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && byID[a.GetScheduledEventId()] != nil {
			var outcome pregel.Outcome
			if err := d.decode(a.GetResult(), &outcome); err != nil {
				return nil, err
			}
			one := byID[a.GetScheduledEventId()]
			one.asked = len(outcome.Questions) > 0
			ended = append(ended, *one)
		}
	}
	return ended, nil
}

func (d *refunding) decode(stored *commonpb.Payloads, into any) error {
	if err := d.Tail.Converter.FromPayloads(stored, into); err != nil {
		return fmt.Errorf("read the record of the run: %w", err)
	}
	return nil
}
