package activities_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/serving"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// TestWhatALostTaskStoredIsKnown: the server cancels an activity between two attempts at once, and forgets what it stored.
// What its lost worker had called is listed and undone all the same; where that was not stored, the run says so.
func TestWhatALostTaskStoredIsKnown(t *testing.T) {
	for _, c := range []struct {
		name    string
		in      protocol.GraphInput
		pinned  bool // the task is an activity of its own
		unheard bool // no heartbeat of the lost worker gets through
		mode    protocol.CancelMode
		state   string // of the effect in the end, "" for one that nobody knows
		problem bool
	}{
		{"keep", protocol.GraphInput{}, false, false, protocol.CancelKeep, "committed", false},
		{"drop", protocol.GraphInput{}, false, false, protocol.CancelDrop, "committed", false},
		{"compensate", protocol.GraphInput{}, false, false, protocol.CancelCompensate, "compensated", false},
		{"compensate fused", protocol.GraphInput{Fused: true}, false, false, protocol.CancelCompensate, "compensated", false},
		{"compensate async", protocol.GraphInput{Durability: graphadapter.DurabilityAsync}, false, false, protocol.CancelCompensate, "compensated", true},
		{"compensate async activity", protocol.GraphInput{Durability: graphadapter.DurabilityAsync}, true, false, protocol.CancelCompensate, "compensated", true},
		{"compensate exit activity", protocol.GraphInput{Durability: graphadapter.DurabilityExit}, true, false, protocol.CancelCompensate, "", true},
		{"compensate async unheard", protocol.GraphInput{Durability: graphadapter.DurabilityAsync}, false, true, protocol.CancelCompensate, "", true},
		{"compensate exit", protocol.GraphInput{Durability: graphadapter.DurabilityExit}, false, false, protocol.CancelCompensate, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, out := newRig(t), &outside{made: map[string]bool{}}
			called, release := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(release) })
			g := out.undoable(func() {
				close(called)
				<-release // whatever it is told
			})
			if c.pinned {
				g = r.pinned(g)
			}
			lost := newLine()
			if c.unheard {
				lost.cutOff(errors.New("no line"))
			}
			lose := r.workOn(lost, g, worker.Options{WorkerStopTimeout: time.Millisecond})
			in := c.in
			in.Graph = "undoable"
			run := r.start(in)
			<-called
			if in.Durability == graphadapter.DurabilityAsync && !c.unheard {
				r.pending(run, "the effect is stored", func(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
					return len(d.GetPendingActivities()) == 1 && strings.Contains(d.String(), "committed")
				})
			}
			lose()
			r.pending(run, "the task waits for a worker", func(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
				return len(d.GetPendingActivities()) == 1 && d.GetPendingActivities()[0].GetAttempt() > 1
			})
			r.workOn(newLine(), g, worker.Options{LocalActivityWorkerOnly: true}) // nobody takes the task
			r.cancel(run, c.mode)
			if c.mode == protocol.CancelCompensate {
				r.pending(run, "the task is cancelled", func(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
					a := d.GetPendingActivities()
					return len(a) == 1 && a[0].GetActivityType().GetName() == taskrun.StandingActivity
				})
				r.work(g)
			}
			if err := run.Get(r.ctx, nil); err == nil {
				t.Fatal("the run ended well")
			}
			r.leaves(run.GetID(), out, c.state, c.problem)
		})
	}
}

// leaves wants the thread's one effect to be in that state, and the run to say that it does not know all.
func (r *rig) leaves(threadID string, out *outside, state string, problem bool) {
	r.t.Helper()
	c, err := superstep.NewClient(r.client, superstep.ClientConfig{TaskQueue: r.queue})
	if err != nil {
		r.t.Fatal(err)
	}
	effects, err := c.Effects(r.ctx, thread.EffectsRequest{Thread: threadID})
	if err != nil {
		r.t.Fatal(err)
	}
	var states []string
	for _, e := range effects.Effects {
		states = append(states, e.State)
	}
	if got := strings.Join(states, " "); got != state {
		r.t.Errorf("its effects are %q, want %q", got, state)
	}
	want := []string{"it"}
	if state == "compensated" {
		want = append(want, "not it")
	}
	if log := out.written(); !slices.Equal(log, want) {
		r.t.Errorf("the outside heard %v, want %v", log, want)
	}
	view, err := c.Show(r.ctx, threadID)
	if err != nil {
		r.t.Fatal(err)
	}
	said := view.Cancel != nil && strings.Contains(view.Cancel.Problem, "a worker was lost")
	if said != problem {
		r.t.Errorf("it was cancelled as %+v", view.Cancel)
	}
}

// undoable is a graph whose one node writes, and then calls after.
func (o *outside) undoable(after func()) *graphadapter.Graph {
	type state struct {
		Log superstep.List[string] `json:"log"`
	}
	write := o.effect("outside.write", true)
	write.Target = superstep.TargetKeyed // others are not called by a worker that the server has never heard
	write.Compensate = func(ctx context.Context, key, whose, _ string) error {
		_, err := o.write(ctx, key, "not "+whose)
		return err
	}
	g := superstep.NewStateGraph[state]("undoable")
	g.AddEffect(write)
	g.AddNode("write", func(ctx context.Context, s state) (state, error) {
		_, err := write.Call(ctx, "it")
		after()
		return s, err
	})
	g.AddEdge(superstep.Start, "write")
	return g.MustCompile().Adapter()
}

// workOn starts a worker on a line. To lose it is to end it, and its connection, with what it runs.
func (r *rig) workOn(l *line, g *graphadapter.Graph, options worker.Options) (lose func()) {
	r.t.Helper()
	options.StickyScheduleToStartTimeout = time.Second
	c := r.dial(l)
	w := worker.New(c, r.queue, options)
	serving.Register(w, c, serving.Config{Graphs: []*graphadapter.Graph{g}, LostAfter: r.lostAfter})
	if err := w.Start(); err != nil {
		r.t.Fatal(err)
	}
	lost := false
	lose = func() {
		if !lost {
			lost = true
			l.freeze()
			w.Stop()
			c.Close()
		}
	}
	r.t.Cleanup(lose)
	return lose
}

// cancel cancels a run as a client does.
func (r *rig) cancel(run client.WorkflowRun, mode protocol.CancelMode) {
	r.t.Helper()
	err := r.client.SignalWorkflow(r.ctx, run.GetID(), run.GetRunID(), protocol.SignalCancel,
		protocol.CancelRequest{ID: "c", Mode: mode})
	if err == nil {
		err = r.client.CancelWorkflow(r.ctx, run.GetID(), run.GetRunID())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}
