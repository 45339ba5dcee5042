package demo

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/history"
)

// Recorded is what a task under way has on record of its calls, from the heartbeat that the server stored: nothing while
// there is none. The task is named by its graph and node: "refund.commit_refund".
func (s *Stage) Recorded(ctx context.Context, thread, runID, task string) ([]ledger.Entry, error) {
	described, err := s.Temporal.DescribeWorkflowExecution(ctx, thread, runID)
	if err != nil {
		return nil, fmt.Errorf("look at the run: %w", err)
	}
	for _, pending := range described.GetPendingActivities() {
		kind := pending.GetActivityType().GetName()
		if kind != task && kind != segment.SegmentActivity || pending.GetHeartbeatDetails() == nil {
			continue
		}
		var progress graphadapter.Progress
		if err := s.decode(pending.GetHeartbeatDetails(), &progress); err != nil {
			return nil, err
		}
		for key, stored := range progress.Tasks {
			if _, node, _ := strings.Cut(task, "."); path.Base(key) == node {
				return Ledger(stored)
			}
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

// Executions reads the finished tasks of a run, in their order, from its recorded history: each an activity of its own, or part of
// a segment.
func (s *Stage) Executions(ctx context.Context, thread, runID string) ([]Execution, error) {
	recorded, err := s.Tail.All(ctx, thread, runID)
	if err != nil {
		return nil, fmt.Errorf("read the history of the run: %w", err)
	}
	began := map[int64]*started{} // by the event that scheduled the activity
	var ended []Execution
	for _, e := range recorded {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			began[e.GetEventId()] = &started{kind: a.GetActivityType().GetName(), input: a.GetInput()}
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
			one := began[a.GetScheduledEventId()]
			one.attempt, one.at = a.GetAttempt(), e.GetEventTime().AsTime()
		}
		var more []Execution
		if kind, result := history.Local(s.Tail.Converter, e); kind == segment.OpeningActivity {
			more, err = s.executions(started{kind: kind, attempt: 1, at: e.GetEventTime().AsTime()}, result)
		} else if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
			more, err = s.executions(*began[a.GetScheduledEventId()], a.GetResult())
		}
		if err != nil {
			return nil, err
		}
		ended = append(ended, more...)
	}
	return ended, nil
}

// started is the attempt of an activity that ended it.
type started struct {
	kind    string
	input   *commonpb.Payloads
	attempt int32
	at      time.Time
}

// executions are the tasks that an activity ran, by its result.
func (s *Stage) executions(a started, result *commonpb.Payloads) ([]Execution, error) {
	if a.kind == segment.OpeningActivity || a.kind == segment.SegmentActivity {
		var encoded []byte
		if err := s.decode(result, &encoded); err != nil || len(encoded) == 0 {
			return nil, err // without a result it went on in its activity
		}
		whole, err := segment.DecodeWhole(encoded)
		if err != nil {
			return nil, fmt.Errorf("read the record of the run: %w", err)
		}
		var out []Execution
		for _, d := range whole.Deliveries {
			one, err := a.execution(path.Base(d.Key), d.Outcome)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	}
	var request graphadapter.NodeRequest
	var outcome pregel.Outcome
	if err := errors.Join(s.decode(a.input, &request), s.decode(result, &outcome)); err != nil {
		return nil, err
	}
	one, err := a.execution(request.Task.Node, outcome)
	return []Execution{one}, err
}

func (a started) execution(node string, o pregel.Outcome) (Execution, error) {
	did, err := Ledger(o.Ledger)
	return Execution{Node: node, Attempt: a.attempt, Began: a.at, Asked: len(o.Questions) > 0, Ledger: did}, err
}

func (s *Stage) decode(stored *commonpb.Payloads, into any) error {
	if err := s.Tail.Converter.FromPayloads(stored, into); err != nil {
		return fmt.Errorf("read the record of the run: %w", err)
	}
	return nil
}
