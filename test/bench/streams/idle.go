package main

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"

	"superstep.dev/test/processes"
)

// idle measures the memory that threads take which have run once and rest.
func (s *stage) idle(ctx context.Context, t *table) error {
	p, err := s.pair(ctx, true)
	if err != nil {
		return err
	}
	if err := rested(ctx, p, 50); err != nil { // what is made once is there
		return err
	}
	all := []struct {
		name string
		of   *processes.Process
	}{{"serve", p.serve}, {"worker", p.worker}, {"devserver", p.devserver}}
	before := make([]float64, len(all))
	for n, one := range all {
		if before[n], err = resident(one.of); err != nil {
			return err
		}
	}
	if err := rested(ctx, p, s.options.threads); err != nil {
		return err
	}
	for n, one := range all {
		after, err := resident(one.of)
		if err != nil {
			return err
		}
		t.stated(fmt.Sprintf("%d idle threads, memory of the %s before", s.options.threads, one.name), "MiB", before[n]/1024)
		t.stated(fmt.Sprintf("%d idle threads, memory of the %s after", s.options.threads, one.name), "MiB", after/1024)
		t.stated(fmt.Sprintf("idle threads, memory of the %s for one", one.name), "KiB", (after-before[n])/float64(s.options.threads))
	}
	return p.stop()
}

// rested lets threads run once, ten at a time.
func rested(ctx context.Context, p *pair, threads int) error {
	var all errgroup.Group
	all.SetLimit(10)
	for range threads {
		all.Go(func() error {
			id, err := thread(ctx, p.base)
			if err != nil {
				return err
			}
			return ask(ctx, http.MethodPost, p.base+"/threads/"+id+"/runs/wait", object{"assistant_id": "steps", "input": object{"note": "n"}}, nil)
		})
	}
	return all.Wait()
}
