package graphtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// server is where the heartbeats of one task are stored, and its clock: the wait before a next attempt passes at once.
type server struct {
	mu   sync.Mutex
	kept graphadapter.Progress
	now  time.Time
}

// activity runs one task as its activity does: execution after execution, until one comes to an end.
func (tr *trial) activity(t *pregel.Task, suspect bool) (pregel.Outcome, error) {
	s := &server{now: time.Now()}
	for number := int32(1); ; number++ {
		w := tr.live()
		outcome, err := executed(w, func() (pregel.Outcome, error) { return tr.execute(w, t, suspect, number, s) })
		var again *host.RetryError
		switch {
		case errors.Is(err, errLost):
		case errors.As(err, &again):
			s.now = s.now.Add(again.After)
		case err != nil:
			return outcome, fmt.Errorf("task %s: %w", t.Key(), err)
		default:
			return outcome, nil
		}
	}
}

// execute is one execution of a task.
func (tr *trial) execute(w *process, t *pregel.Task, suspect bool, number int32, s *server) (out pregel.Outcome, err error) {
	x := w.execution(t.Key())
	x.at("start")
	req := graphadapter.NodeRequest{Graph: tr.graph.Spec.Name, Thread: matrixThread, Context: tr.m.settings.context, Suspect: suspect}
	if req.Task, err = sent(*t); err != nil {
		return out, err
	}
	s.mu.Lock()
	kept, err := sent(s.kept)
	s.mu.Unlock()
	if err != nil {
		return out, err
	}
	beats := &heartbeats{server: s, by: w}
	if beats.task, err = host.Open(&req, host.Execution{Attempt: number, Repeated: number > 1}, kept, beats); err != nil {
		return out, err
	}
	if early := beats.task.Early(); early != nil {
		return out, early
	}
	out, err = beats.task.Run(w.ctx, tr.graph, taskrun.Env{
		Journal: x.record(beats.task.Outbox), Outside: tr.outside.serve(x), Use: allowed,
	})
	x.at("end")
	x.finished()
	if err != nil {
		return out, err
	}
	return sent(out)
}

// heartbeats are the host.Server of one execution: a worker that has crashed reaches it no more.
type heartbeats struct {
	*server
	by   *process
	task *host.Task
}

// Send implements host.Server.
func (h *heartbeats) Send(context.Context) error {
	progress := h.task.Progress()
	if !h.by.of.crashes.alive(h.by, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.kept = progress
	}) {
		return graphadapter.ErrFenced
	}
	return nil
}

// Store implements host.Server.
func (h *heartbeats) Store(ctx context.Context) error { return h.Send(ctx) }

// Lost implements host.Server.
func (h *heartbeats) Lost() error { return context.Cause(h.by.ctx) }

// Held implements taskrun.Lease.
func (h *heartbeats) Held() error { return h.Lost() }

// Confirm implements taskrun.Lease.
func (h *heartbeats) Confirm(context.Context) error { return h.Lost() }

// Now implements host.Server.
func (h *heartbeats) Now() time.Time { return h.now }
