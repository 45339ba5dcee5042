package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"superstep.dev"
	"superstep.dev/thread"
)

// people answer a thread's questions.
type people struct {
	client *superstep.Client
	thread string

	mu       sync.Mutex
	sent     int // requests, those that were repeated included
	refused  int // for the question was answered before
	repeated int // that were taken before, under the same id
	unheard  int // that got no reply: a worker was lost, or the run was over
	asked    map[string]bool
	taken    map[string]string // by question: the answer that a person was told to have been the first to give
	twice    []string          // questions of which two were told that
}

// answer answers what the thread asks until it is over, as people do who do not know of each other: each of them
// everything, by signal or by update in turn, and every other one twice, since nobody knows whether the first arrived.
func (p *people) answer(ctx context.Context, name string, turn int) error {
	var given int
	done := map[string]bool{}
	for {
		v, err := p.client.Show(ctx, p.thread)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case passing(err) || err == nil && v.Closed.IsZero() && len(v.Questions) == 0:
			if err := pause(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return fmt.Errorf("%s looks at the thread: %w", name, err)
		case !v.Closed.IsZero():
			return nil
		}
		for _, q := range v.Questions {
			if done[q.ID] {
				continue
			}
			given++
			text := fmt.Sprintf("%s by %s", q.Value, name)
			req := thread.ResumeRequest{Thread: p.thread, Question: q.ID, Value: fmt.Appendf(nil, "%q", text), ID: name + " " + q.ID,
				By: name, Signal: (given+turn)%2 == 0}
			heard := false
			for range 1 + (given/2+turn)%2 {
				reply, err := p.client.Resume(ctx, req)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if heard, err = p.note(req, text, reply, err); err != nil {
					return fmt.Errorf("%s answers %s: %w", name, q.ID, err)
				}
			}
			done[q.ID] = heard
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// note takes in what became of a request. Without a reply it is sent again.
func (p *people) note(req thread.ResumeRequest, text string, reply thread.ResumeReply, err error) (heard bool, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	p.asked[req.Question] = true
	switch {
	case errors.Is(err, thread.ErrAnswerRefused), errors.Is(err, thread.ErrNotFound):
		p.refused++
	case passing(err):
		p.unheard++
		return false, nil
	case err != nil:
		return false, err
	case req.Signal: // stored; the run says nothing
	case !reply.Accepted:
		p.repeated++
	case p.taken[req.Question] != "" && p.taken[req.Question] != text:
		p.twice = append(p.twice, req.Question)
	default:
		p.taken[req.Question] = text
	}
	return true, nil
}

// passing reports whether it may go well a moment later.
func passing(err error) bool {
	return errors.Is(err, thread.ErrNoWorker) || errors.Is(err, thread.ErrNoServer) || errors.Is(err, thread.ErrBusy)
}

// pause waits a moment between two looks.
func pause(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
