package workflows_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"superstep.dev/activities"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/history"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"

	"go.temporal.io/sdk/converter"
)

// call sends an update to a thread's run and waits for its outcome.
func (r *rig) call(thread, name, id string, req, reply any) error {
	err := r.callOnce(thread, name, id, req, reply)
	if protocol.RefusedEarly(err) {
		err = r.callOnce(thread, name, id, req, reply)
	}
	return err
}

func (r *rig) callOnce(thread, name, id string, req, reply any) error {
	handle, err := r.client.UpdateWorkflow(r.ctx, client.UpdateWorkflowOptions{
		WorkflowID: thread, UpdateID: id, UpdateName: name, Args: []any{req}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(r.ctx, reply)
	}
	return err
}

func (r *rig) invoke(thread string, req protocol.InvokeRequest) error {
	return r.call(thread, protocol.UpdateInvoke, req.ID, req, nil)
}

func (r *rig) updateState(thread string, req protocol.UpdateStateRequest) (reply protocol.UpdateStateReply, err error) {
	err = r.call(thread, protocol.UpdateState, req.ID, req, &reply)
	return reply, err
}

// as is one update of the log in the name of a node.
func as(node string, words ...string) graphadapter.StateUpdate {
	u := graphadapter.StateUpdate{AsNode: node}
	if len(words) > 0 {
		u.Values = writes("log", words).Update
	}
	return u
}

// one is a request of one update.
func one(id string, u graphadapter.StateUpdate) protocol.UpdateStateRequest {
	return protocol.UpdateStateRequest{ID: id, Edits: [][]graphadapter.StateUpdate{{u}}}
}

func tail(c client.Client) history.Tail {
	return history.Tail{Service: c.WorkflowService(), Namespace: "default", Converter: converter.GetDefaultDataConverter()}
}

// rested is a Past that knows whether the thread stands still.
type rested struct {
	*past.Past
	still bool
}

func (p *rested) Began(at int64, program *pregel.Program, t *pregel.Thread, d graphadapter.Durability) {
	p.still = false
	p.Past.Began(at, program, t, d)
}

func (p *rested) Ended(at int64, s pregel.Status, t *pregel.Thread) {
	p.still = true
	p.Past.Ended(at, s, t)
}

// past replays a thread's newest run, as soon as it is durable that it stands still: a query may know a little earlier.
func (r *rig) past(thread, runID string, g *graphadapter.Graph) *past.Past {
	r.t.Helper()
	reader := tail(r.client)
	events := reader.Events(thread, runID)
	for {
		if err := events.More(r.ctx); err != nil {
			r.t.Fatal(err)
		}
		p := &rested{Past: past.NewPast()}
		if err := reader.ReplayEvents(thread, runID, events.All, workflows.NewReader(g, p)); err != nil {
			r.t.Fatal(err)
		}
		if p.still {
			return p.Past
		}
	}
}

// at returns the state of a thread at an earlier step of its run, as a client chooses it, and that checkpoint's id.
func (r *rig) at(thread, runID string, g *graphadapter.Graph, step int) (pregel.Value, string) {
	r.t.Helper()
	past := r.past(thread, runID, g)
	all, err := past.History(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range all {
		if s.Step != step {
			continue
		}
		chosen, _ := past.At(s.Checkpoint, pregel.ForReplay)
		program, _ := past.Thread()
		state, err := program.EncodeThread(chosen)
		if err != nil {
			r.t.Fatal(err)
		}
		return state, s.Checkpoint
	}
	r.t.Fatalf("none of the run's %d checkpoints is of step %d", len(all), step)
	return nil, ""
}

// samePast compares every checkpoint of a thread of one run, as a replay of it tells, with those in memory.
func (r *rig) samePast(thread string, g *graphadapter.Graph, memory *taskrun.Thread) {
	r.t.Helper()
	past := r.past(thread, r.client.GetWorkflow(r.ctx, thread, "").GetRunID(), g)
	told, err := past.History(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	want, err := memory.History(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(told) != len(want) {
		r.t.Fatalf("a replay tells of %d checkpoints, memory of %d", len(told), len(want))
	}
	for i := range told {
		if want[i].When.IsZero() {
			r.t.Errorf("in memory checkpoint %d of %d has no time", i, len(told))
		}
		want[i].When = time.Time{} // a replay knows the times of events, which nobody has given to it here
		if got, want := asJSON(r.t, told[i]), asJSON(r.t, want[i]); got != want {
			r.t.Errorf("checkpoint %d of %d is\n%s, in memory\n%s", i, len(told), got, want)
		}
	}
}

// shown are the lines of a thread in memory, oldest first, without what only the process that made them knows.
func shown(t *testing.T, thread *taskrun.Thread) []protocol.Line {
	t.Helper()
	past, err := thread.History(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []protocol.Line
	for i := len(past) - 1; i >= 0; i-- {
		s := past[i]
		out = append(out, protocol.Line{Step: s.Step, Checkpoint: s.Checkpoint, Parent: s.Parent, Source: s.Source, Next: s.Next})
	}
	return out
}

// short leaves out of lines what [shown] does not know.
func short(lines []protocol.Line) []protocol.Line {
	for i := range lines {
		lines[i].Ran, lines[i].Wrote = nil, nil
	}
	return lines
}

// sameLines compares a thread's lines on the server with those in memory.
func (r *rig) sameLines(thread string, memory *taskrun.Thread) {
	r.t.Helper()
	got, want := asJSON(r.t, short(r.lines(thread))), asJSON(r.t, shown(r.t, memory))
	if got != want {
		r.t.Errorf("the checkpoints are\n%s, in memory they are\n%s", got, want)
	}
}

// memorized runs input on a thread in memory.
func memorized(t *testing.T, thread *taskrun.Thread, in protocol.Input, opts graphadapter.RunOptions) graphadapter.RunResult {
	t.Helper()
	result, err := thread.Run(context.Background(), pregel.Input(in), opts)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func input(text string) protocol.Input { return protocol.Input{Value: json.RawMessage(text)} }

// workBriefly is work with a worker that waits for nobody when it stops.
func (r *rig) workBriefly(graphs ...*graphadapter.Graph) (stop func()) {
	r.t.Helper()
	w := worker.New(r.client, r.queue, worker.Options{Identity: "brief", StickyScheduleToStartTimeout: time.Second, WorkerStopTimeout: time.Second,
		DeadlockDetectionTimeout: raced})
	workflows.NewGraphs(graphs, workflows.Config{LostAfter: steady}).Register(w)
	activities.NewNodes(r.client, graphs).Register(w)
	if err := w.Start(); err != nil {
		r.t.Fatal(err)
	}
	return w.Stop
}
