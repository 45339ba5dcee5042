package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// gate is a file that is not there, and what makes it.
func (s *stage) gate() (path string, open func() error, err error) {
	dir, err := os.MkdirTemp(s.Dir, "gate")
	path = filepath.Join(dir, "open")
	return path, func() error { return os.WriteFile(path, nil, 0o600) }, err
}

// crowdThreads are those that a crowd reads.
const crowdThreads = 10

// openStreams opens many streams of few threads at once, lets the runs emit, and wants every reader to have every event.
func (s *stage) openStreams(ctx context.Context, t *table) error {
	for _, count := range []int{500, 2000} {
		if err := s.crowd(ctx, t, count); err != nil {
			return fmt.Errorf("%d streams: %w", count, err)
		}
	}
	return nil
}

func (s *stage) crowd(ctx context.Context, t *table, count int) error {
	p, err := s.pair(ctx, false)
	if err != nil {
		return err
	}
	gate, open, err := s.gate()
	if err != nil {
		return err
	}
	of := pace{Steps: 1, Count: 20, Every: 100, Size: 100, Gate: gate}
	var urls []string
	for range crowdThreads {
		url, err := begin(ctx, p.base, of)
		if err != nil {
			return err
		}
		for range count / crowdThreads {
			urls = append(urls, url)
		}
	}
	before, err := resident(p.serve)
	if err != nil {
		return err
	}
	begun := time.Now()
	var opened time.Duration
	var after float64
	all, err := readAll(ctx, urls, of.all(), func() (err error) {
		opened = time.Since(begun)
		after, err = resident(p.serve)
		return errors.Join(err, open())
	})
	if err != nil {
		return err
	}
	if all.failed > 0 {
		fmt.Fprintln(os.Stderr, "streams: the end of what serve wrote:", p.serve.Tail(20))
	}
	name := fmt.Sprintf("%d open streams", count)
	t.stated(name+", until the last has its first event", "s", opened.Seconds())
	t.stated(name+", memory of serve for one", "KiB", (after-before)/float64(count))
	t.stated(name+", errors", "", float64(all.failed))
	t.stated(name+", whose node ran again", "", float64(all.again))
	return p.stop()
}

// allRead is what came of many streams: how late all events but the first came, how many streams failed, and how many had a node that ran
// again: its worker was taken for lost.
type allRead struct {
	late          []float64
	failed, again int
}

// readAll opens streams at once and reads them to their ends; on is called when each of them has its first event.
func readAll(ctx context.Context, urls []string, count int, on func() error) (all allRead, err error) {
	type read struct {
		heard
		err error
	}
	firsts, reads := make(chan struct{}, len(urls)), make(chan read, len(urls))
	for _, url := range urls {
		go func() {
			first := sync.OnceFunc(func() { firsts <- struct{}{} })
			defer first() // one that fails holds nobody up
			resp, err := send(ctx, client, http.MethodGet, url, nil)
			if err != nil {
				reads <- read{err: err}
				return
			}
			defer resp.Body.Close()
			h, err := ticks(resp.Body, count, first)
			reads <- read{h, err}
		}()
	}
	for range urls {
		<-firsts
	}
	if err := on(); err != nil {
		return all, err
	}
	why := map[string]int{}
	for range urls {
		r := <-reads
		if r.err != nil {
			all.failed++
			why[r.err.Error()]++
			continue
		}
		if r.again > 0 {
			all.again++
		}
		all.late = append(all.late, r.late[1:]...)
	}
	for _, text := range slices.Sorted(maps.Keys(why)) {
		fmt.Fprintln(os.Stderr, "streams:", why[text], "of them:", text)
	}
	return all, nil
}
