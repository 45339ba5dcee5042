package workflows_test

import (
	"context"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// gate is a node that waits to be let go, and writes its name.
type gate struct {
	graphadapter.Node
	began, release chan struct{}
}

func newGate(name string) gate {
	g := gate{began: make(chan struct{}, 10), release: make(chan struct{}, 10)}
	g.Run = func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		g.began <- struct{}{}
		select {
		case <-g.release:
		case <-ctx.Done():
		}
		return writes("log", []string{name}), context.Cause(ctx)
	}
	return g
}

// TestEventsOfASegment: what waits in it is known when it comes back. An event that comes before is kept, and given then.
func TestEventsOfASegment(t *testing.T) {
	for mode, in := range fusedModes {
		for _, when := range []string{"during", "after"} {
			t.Run(mode+" "+when, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				first, right := newGate("first"), newGate("right")
				g := graph("waiting", map[string]graphadapter.Node{"first": first.Node, "left": waitsFor(0, "paid", "sent"), "right": right.Node, "end": says("end")},
					[]string{"first", "left", "right", "end"}, to(pregel.Start, "first"), to("first", "left"), to("first", "right"), to("left", "end"), to("right", "end"))
				r.work(g)
				thread := testserver.Queue(t)
				in.Graph, in.Input = "waiting", input(`{}`)
				run := r.start(thread, in)
				send := func(name string, waiting int) {
					t.Helper()
					reply, err := r.event(thread, protocol.EventRequest{ID: name, Name: name, Value: word(name)})
					if err != nil || len(reply.Nodes) != waiting {
						t.Errorf("the event %q: %+v, %v", name, reply, err)
					}
				}
				<-first.began
				send("paid", 0)
				first.release <- struct{}{}
				<-right.began
				if when == "during" {
					send("sent", 0)
				}
				right.release <- struct{}{}
				if when == "after" {
					r.waitsForEvents(thread, 1)
					send("sent", 1)
				}
				r.logIs(run, `["first","paid","sent","right","end"]`)
			})
		}
	}
}

// TestAnEventWhileItsWaitIsDropped is kept for the wait of the run that goes on: the superstep that is being forgotten
// does not use it up.
func TestAnEventWhileItsWaitIsDropped(t *testing.T) {
	for mode, in := range allModes() {
		t.Run("dropped"+mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			right := newGate("right")
			told, end := make(chan struct{}, 1), make(chan struct{})
			run := right.Run
			right.Run = func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
				c, err := run(ctx, in)
				if err != nil {
					told <- struct{}{}
					<-end
				}
				return c, err
			}
			r.work(waitingGraph(waitsFor(0, "paid"), right.Node))
			thread := testserver.Queue(t)
			start := in
			start.Graph, start.Input = "waiting", input(`{}`)
			first := r.start(thread, start)
			<-right.began
			// As a client does it.
			if err := r.client.SignalWorkflow(r.ctx, thread, "", protocol.SignalCancel, protocol.CancelRequest{ID: "c", Mode: protocol.CancelDrop}); err != nil {
				t.Fatal(err)
			}
			if err := r.client.CancelWorkflow(r.ctx, thread, ""); err != nil {
				t.Fatal(err)
			}
			<-told
			reply, err := r.event(thread, protocol.EventRequest{ID: "e", Name: "paid", Value: word("p")})
			if err != nil || len(reply.Nodes) != 0 {
				t.Errorf("while its superstep is being dropped a wait was given %+v, %v", reply, err)
			}
			_, err = r.update(thread, protocol.ResumeRequest{ID: "a", Question: "q", Value: word("yes")})
			if errorKind(err) != protocol.ErrTypeBusy {
				t.Errorf("an answer while its superstep is being dropped: %v", err)
			}
			close(end)
			left := closingOf(t, first.Get(r.ctx, nil))
			if len(left.Life.Kept) != 1 {
				t.Fatalf("the run left the events %+v", left.Life.Kept)
			}
			again := next("waiting", left)
			again.Life, again.Fused, again.Durability = left.Life, in.Fused, in.Durability
			right.release <- struct{}{}
			r.logIs(r.start(thread, again), `["p","right","end"]`)
		})
	}
}
