package main

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// trip is one run, as its own history tells it.
type trip struct {
	started, closed time.Time
	wall            time.Duration
	events, bytes   int
}

type trips []trip

func (t trip) ran() float64        { return milliseconds(t.closed.Sub(t.started)) }
func (t trip) perStep() float64    { return t.ran() / chainNodes }
func (t trip) waited() float64     { return milliseconds(t.wall) }
func (t trip) eventCount() float64 { return float64(t.events) }
func (t trip) kilobytes() float64  { return float64(t.bytes) / 1024 }

// tripQuantities are what is told of both sides, beside the ratio.
var tripQuantities = []struct {
	name string
	of   func(trip) float64
}{
	{"ms a step", trip.perStep},
	{"ms wall clock", trip.waited},
	{"events", trip.eventCount},
	{"KiB of history", trip.kilobytes},
}

func (t trips) of(quantity func(trip) float64) sample {
	out := make(sample, len(t))
	for i, one := range t {
		out[i] = quantity(one)
	}
	return out
}

// readTrip reads a closed run's history.
func readTrip(ctx context.Context, c client.Client, id, runID string, wall time.Duration) (trip, error) {
	t := trip{wall: wall}
	events := c.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return t, err
		}
		t.events++
		t.bytes += e.Size()
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			t.started = e.GetEventTime().AsTime()
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
			t.closed = e.GetEventTime().AsTime()
		}
	}
	if t.closed.IsZero() {
		return t, fmt.Errorf("run %s did not complete", id)
	}
	return t, nil
}
