package workflows_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestWhatARunUnderWayIsAsked: it refuses what would change the state under its hands, and takes an answer to a
// question that is open beside it, and a drain. Nothing that it has begun runs again for that.
func TestWhatARunUnderWayIsAsked(t *testing.T) {
	for mode, in := range allModes() {
		t.Run("busy"+mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var ran atomic.Int32
			asks, working := asking("one", "first"), newGate("one worked")
			works := graphadapter.Node{Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
				if _, err := asks.Run(ctx, in); err != nil {
					return pregel.Command{}, err
				}
				ran.Add(1)
				return working.Run(ctx, in)
			}}
			g := graph("busy", map[string]graphadapter.Node{"one": works, "two": asking("two", "second"), "end": says("end")},
				[]string{"one", "two", "end"}, to(pregel.Start, "one"), to(pregel.Start, "two"), to("one", "end"), to("two", "end"))
			r.work(g)
			thread := testserver.Queue(t)
			in.Graph, in.Input = "busy", input(`{}`)
			run := r.start(thread, in)
			s := r.asks(thread, 2)
			if _, err := r.update(thread, answer("1", questionOf(t, s, "one"), `"yes"`)); err != nil {
				t.Fatal(err)
			}
			<-working.began
			for what, refused := range map[string]error{
				"new input": r.invoke(thread, protocol.InvokeRequest{ID: "i", Input: input(`{}`)}),
				"an update": func() error { _, err := r.updateState(thread, one("u", as("two", "by hand"))); return err }(),
			} {
				if errorKind(refused) != protocol.ErrTypeBusy {
					t.Errorf("%s under way: %v", what, refused)
				}
			}
			if err := r.call(thread, protocol.UpdateRetry, "r", protocol.RetryRequest{ID: "r"}, nil); errorKind(err) != protocol.ErrTypeNotFailed {
				t.Errorf("a retry under way: %v", err)
			}
			if _, err := r.update(thread, answer("2", questionOf(t, s, "two"), `"yes"`)); err != nil {
				t.Fatal(err)
			}
			if err := r.call(thread, protocol.UpdateDrain, "d", protocol.DrainRequest{ID: "d", Reason: "a deploy"}, nil); err != nil {
				t.Fatal(err)
			}
			working.release <- struct{}{}
			if s := r.stopped(thread); s.Drained != "a deploy" || strings.Join(s.Snapshot.Next, " ") != "end" {
				t.Errorf("drained, it is %+v", s)
			}
			if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
				t.Fatal(err)
			}
			r.logIs(run, `["one worked","two","\"yes\"","end"]`)
			if ran.Load() != 1 {
				t.Errorf("what was under way ran %d times", ran.Load())
			}
		})
	}
}
