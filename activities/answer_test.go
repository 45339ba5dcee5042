package activities_test

import (
	"context"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// TestAnAnswerBySignalComesWithItsQuestion: the same workflow task handles the outcome that asks and the answer. A query shows
// such a question before, and whoever sends a signal is not told that nobody asked.
func TestAnAnswerBySignalComesWithItsQuestion(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]graphadapter.Durability{"a task": graphadapter.DurabilitySync, "a segment": graphadapter.DurabilityAsync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, begun, asks := newRig(t), make(chan struct{}, 10), make(chan struct{}, 10)
			g := one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
				begun <- struct{}{}
				<-asks
				answer, err := task.Ask(ctx, pregel.Value(`"go on?"`), nil, "go on")
				return logs(string(answer)), err
			})
			if mode == graphadapter.DurabilitySync {
				r.pinned(g)
			}
			l, _ := r.work(g)
			in := protocol.GraphInput{Graph: "one", Durability: mode}

			// A thread's question has the same id each time the thread begins.
			asks <- struct{}{}
			run := r.start(in)
			<-begun
			question := r.question(run).ID
			if err := r.client.TerminateWorkflow(r.ctx, run.GetID(), "", "begins again"); err != nil {
				t.Fatal(err)
			}

			run = r.startAs(run.GetID(), in)
			<-begun
			await(t, "its activity", func() bool { return r.events(run, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) == 1 }, func() any { return nil })
			free := l.holdBack()
			close(asks)
			await(t, "its end", func() bool { return r.events(run, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED) == 1 }, func() any { return nil })
			err := r.client.SignalWorkflow(r.ctx, run.GetID(), "", protocol.SignalResume,
				protocol.ResumeRequest{ID: "a", Question: question, Value: pregel.Value(`"yes"`)})
			if err != nil {
				t.Fatal(err)
			}
			free()
			if log := r.log(run); log != `["\"yes\""]` {
				t.Errorf("the run ended with %s", log)
			}
		})
	}
}
