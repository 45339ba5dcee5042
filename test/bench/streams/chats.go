package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"

	"superstep.dev/test/bench/testbed"
)

// The chats: so many at once, each a run whose reply has so many tokens.
const (
	chatsAtOnce = 100
	chatTokens  = 200
)

// chats measures the processor time of serve, which follows runs, against that of the worker that runs them.
func (s *stage) chats(ctx context.Context, t *table) error {
	p, err := s.pair(ctx, true)
	if err != nil {
		return err
	}
	var serve, worker, devserver, ratio testbed.Sample
	for round := range s.options.rounds + 1 {
		cpu := func() [3]float64 {
			return [3]float64{testbed.CPU(p.serve.PID()), testbed.CPU(p.worker.PID()), testbed.CPU(p.devserver.PID())}
		}
		before := cpu()
		if err := talk(ctx, p); err != nil {
			return err
		}
		after := cpu()
		if round == 0 {
			continue
		}
		serve, worker = append(serve, (after[0]-before[0])/chatsAtOnce), append(worker, (after[1]-before[1])/chatsAtOnce)
		devserver, ratio = append(devserver, (after[2]-before[2])/chatsAtOnce), append(ratio, (after[0]-before[0])/(after[1]-before[1]))
	}
	t.figure("chats, processor time of serve for one", "ms", serve, "")
	t.figure("chats, of the worker", "ms", worker, "")
	t.figure("chats, of the devserver", "ms", devserver, "")
	t.figure("chats, serve to worker", "x", ratio, "1 x")
	return p.stop()
}

// talk has all chats at once, each of which has to show every token.
func talk(ctx context.Context, p *pair) error {
	body := object{"assistant_id": "chat", "stream_mode": []string{"messages-tuple"},
		"input": object{"messages": []object{{"type": "human", "content": strings.TrimSpace(strings.Repeat("token ", chatTokens))}}}}
	var all errgroup.Group
	for range chatsAtOnce {
		all.Go(func() error {
			resp, err := send(ctx, client, http.MethodPost, p.base+"/runs/stream", body)
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
		})
	}
	return all.Wait()
}
