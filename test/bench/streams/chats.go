package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"superstep.dev/test/bench/testbed"
)

// The chats: so many at once, each a turn on a thread of its own whose reply has so many tokens.
const (
	chatsAtOnce = 100
	chatTokens  = 200
)

// spent is the processor time of a chat, in milliseconds.
type spent struct{ serve, worker, devserver float64 }

// all is that of all processes, the server included, whose work a run is as much as the worker's.
func (s spent) all() float64 { return s.serve + s.worker + s.devserver }

// chats measures what runs take in processor time that nobody follows, and what is added where each has a follower who reads every token.
func (s *stage) chats(ctx context.Context, t *table) error {
	p, err := s.pair(ctx, true)
	if err != nil {
		return err
	}
	var serve, worker, devserver, strict, alone, following, ratio testbed.Sample
	for round := range s.options.rounds + 1 {
		unfollowed, err := p.spent(ctx, converse)
		if err != nil {
			return err
		}
		followed, err := p.spent(ctx, talk)
		if err != nil {
			return err
		}
		if round == 0 {
			continue
		}
		added := followed.all() - unfollowed.all()
		serve, worker, devserver = append(serve, followed.serve), append(worker, followed.worker), append(devserver, followed.devserver)
		strict = append(strict, followed.serve/followed.worker)
		alone, following, ratio = append(alone, unfollowed.all()), append(following, added), append(ratio, added/unfollowed.all())
	}
	t.figure("chats, processor time of a run that nobody follows", "ms", alone, "")
	t.figure("chats, what its follower adds", "ms", following, "")
	t.figure("chats, follower to run", "x", ratio, "1 x")
	t.figure("chats, processor time of serve for one", "ms", serve, "")
	t.figure("chats, of the worker", "ms", worker, "")
	t.figure("chats, of the devserver", "ms", devserver, "")
	t.figure("chats, serve to worker", "x", strict, "")
	return p.stop()
}

// spent is what each process takes for a chat while all of them run, on threads that are there before.
func (p *pair) spent(ctx context.Context, run func(ctx context.Context, url string) error) (spent, error) {
	var urls [chatsAtOnce]string
	for n := range urls {
		id, err := thread(ctx, p.base)
		if err != nil {
			return spent{}, err
		}
		urls[n] = p.base + "/threads/" + id + "/runs"
	}
	cpu := func() spent {
		return spent{testbed.CPU(p.serve.PID()), testbed.CPU(p.worker.PID()), testbed.CPU(p.devserver.PID())}
	}
	before := cpu()
	var all errgroup.Group
	for _, url := range urls {
		all.Go(func() error { return run(ctx, url) })
	}
	if err := all.Wait(); err != nil {
		return spent{}, err
	}
	after := cpu()
	each := func(after, before float64) float64 { return (after - before) / chatsAtOnce }
	return spent{each(after.serve, before.serve), each(after.worker, before.worker), each(after.devserver, before.devserver)}, nil
}

// chat is a message whose reply has all tokens.
func chat() object {
	return object{"assistant_id": "chat", "stream_mode": []string{"messages-tuple"},
		"input": object{"messages": []object{{"type": "human", "content": strings.TrimSpace(strings.Repeat("token ", chatTokens))}}}}
}

// converse has a chat in the background. It looks once a second whether the run has ended: who waited would follow it.
func converse(ctx context.Context, url string) error {
	var run struct {
		ID     string `json:"run_id"`
		Status string `json:"status"`
	}
	if err := ask(ctx, http.MethodPost, url, chat(), &run); err != nil {
		return err
	}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for run.Status == "pending" || run.Status == "running" {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := ask(ctx, http.MethodGet, url+"/"+run.ID, nil, &run); err != nil {
			return err
		}
	}
	if run.Status != "success" {
		return fmt.Errorf("a chat ended as %s", run.Status)
	}
	return nil
}

// talk has a chat, and wants every token.
func talk(ctx context.Context, url string) error {
	resp, err := send(ctx, client, http.MethodPost, url+"/stream", chat())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	tokens := 0
	err = events(resp.Body, func(name string, data []byte) error {
		if name == "messages" {
			tokens++
		}
		if name == "error" {
			return fmt.Errorf("a chat says: %s", data)
		}
		return nil
	})
	if err == nil && tokens < chatTokens {
		err = fmt.Errorf("%d of %d tokens came", tokens, chatTokens)
	}
	return err
}
