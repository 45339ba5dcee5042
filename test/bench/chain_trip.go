package main

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"superstep.dev/test/bench/testbed"
)

// trip is one run: what its caller waited for it, and what its own history tells.
type trip struct {
	steps           int
	started, closed time.Time
	wall            time.Duration
	events, bytes   int
	inSteps         int         // events from the first step to the last, those between two executions left out
	scheduled       []time.Time // the steps' activities
	serverCPU       float64     // ms
	workerCPU       float64     // ms, of this process
}

type trips []trip

func (t trip) ran() float64        { return testbed.Milliseconds(t.wall) }
func (t trip) perStep() float64    { return t.ran() / float64(t.steps) }
func (t trip) onServer() float64   { return t.serverCPU / float64(t.steps) }
func (t trip) onWorker() float64   { return t.workerCPU / float64(t.steps) }
func (t trip) lasted() float64     { return testbed.Milliseconds(t.closed.Sub(t.started)) }
func (t trip) eventCount() float64 { return float64(t.events) }
func (t trip) kilobytes() float64  { return float64(t.bytes) / 1024 }

// usualStep is the median time from one step to the next: a machine that was busy for a moment does not show in it.
func (t trip) usualStep() float64 {
	var steps testbed.Sample
	for i := 1; i < len(t.scheduled); i++ {
		steps = append(steps, testbed.Milliseconds(t.scheduled[i].Sub(t.scheduled[i-1])))
	}
	return steps.Median()
}

// eventsStep leaves out how an execution begins and ends.
func (t trip) eventsStep() float64 { return float64(t.inSteps) / float64(t.steps) }

// eventsBetween are those of all supersteps together.
func (t trip) eventsBetween() float64 { return float64(t.inSteps) }

// tripQuantities are what is told of both sides, beside the ratio.
var tripQuantities = []struct {
	name string
	of   func(trip) float64
}{
	{"ms a step", trip.perStep},
	{"ms median step", trip.usualStep},
	{"ms CPU, worker", trip.onWorker},
	{"ms CPU, server", trip.onServer},
	{"ms in history", trip.lasted},
	{"events", trip.eventCount},
	{"KiB of history", trip.kilobytes},
}

func (t trips) of(quantity func(trip) float64) testbed.Sample {
	out := make(testbed.Sample, len(t))
	for i, one := range t {
		out[i] = quantity(one)
	}
	return out
}

// read takes in a closed run's history, and those of the executions as which it continued.
func (t *trip) read(ctx context.Context, c client.Client, id, runID string) error {
	for runID != "" {
		next, err := t.readExecution(ctx, c, id, runID)
		if err != nil {
			return err
		}
		runID = next
	}
	if t.closed.IsZero() {
		return fmt.Errorf("run %s did not complete", id)
	}
	return nil
}

// readExecution takes in one history and returns the execution that went on from it, if one did.
func (t *trip) readExecution(ctx context.Context, c client.Client, id, runID string) (next string, err error) {
	var first, last int64
	events := c.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return "", err
		}
		t.events++
		t.bytes += e.Size()
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			if first == 0 {
				first = e.GetEventId()
			}
			t.scheduled = append(t.scheduled, e.GetEventTime().AsTime())
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			last = e.GetEventId()
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			if t.started.IsZero() {
				t.started = e.GetEventTime().AsTime()
			}
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
			t.closed = e.GetEventTime().AsTime()
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
			next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
	}
	t.inSteps += int(last - first)
	return next, nil
}
