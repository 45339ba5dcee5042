package superstep

import (
	"context"

	"superstep.dev/graphadapter"
)

func (m *Memory) updateState(_ context.Context, _ *graphadapter.Graph, r UpdateRequest) (StateView, error) {
	return StateView{}, notThereYet(r.Thread, "updates")
}

func (m *Memory) forkRun(_ context.Context, _ *graphadapter.Graph, r ForkRequest) (ThreadView, error) {
	return ThreadView{}, notThereYet(r.Thread, "forks")
}

func (m *Memory) drainRun(_ context.Context, _ *graphadapter.Graph, thread, _ string) (ThreadView, error) {
	return ThreadView{}, notThereYet(thread, "drains")
}

func notThereYet(thread, what string) error {
	return &Error{Kind: ErrBadInput, Thread: thread, Message: what + " are not there yet"}
}
