package graphadapter

import (
	"context"
	"testing"
	"time"
)

// TestASegmentLeaves when its host wants it to, when its time is up, and when a superstep is for other workers.
func TestASegmentLeaves(t *testing.T) {
	leave := make(chan struct{})
	close(leave)
	for name, host := range map[string]SegmentHost{"told": {Leave: leave}, "late": {MaxTime: time.Nanosecond}} {
		r := newFusedRun(t, countdown(10, nil), DurabilityAsync, input(`{}`))
		result, err := RunSegment(t.Context(), r.g, r.suspended(), host)
		if err != nil || len(result.Deliveries) != 0 || len(r.ready) != 1 {
			t.Errorf("%s, the segment ended with %+v, %v", name, result, err)
		}
	}
	for _, mode := range []Durability{DurabilitySync, DurabilityAsync, DurabilityExit} {
		r, heard := newFusedRun(t, countdown(10, nil), mode, input(`{}`)), make(chan struct{})
		host := SegmentHost{Leave: heard, Keep: func(context.Context) error { close(heard); return nil }}
		result, err := RunSegment(t.Context(), r.g, r.suspended(), host)
		if err != nil || len(result.Deliveries) != 1 {
			t.Errorf("told so before its second superstep, in mode %s, the segment ended with %+v, %v", mode, result, err)
		}
	}
	g := countdown(10, nil)
	g.Spec.Nodes[0].TaskQueue = "elsewhere"
	r := newFusedRun(t, g, DurabilityAsync, input(`{}`))
	if result, err := RunSegment(t.Context(), g, r.suspended(), SegmentHost{}); err != nil || len(result.Deliveries) != 0 {
		t.Errorf("the segment ended with %+v, %v", result, err)
	}
}
