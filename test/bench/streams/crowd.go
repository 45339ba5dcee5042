package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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
	_, failed, err := readAll(ctx, urls, of.all(), func() (err error) {
		opened = time.Since(begun)
		after, err = resident(p.serve)
		return errors.Join(err, open())
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d open streams", count)
	t.stated(name+", until the last has its first event", "s", opened.Seconds())
	t.stated(name+", memory of serve for one", "KiB", (after-before)/float64(count))
	t.stated(name+", errors", "", float64(failed))
	return p.stop()
}

// readAll opens streams at once and reads them to their ends; on is called when each of them has its first event. It returns how late the
// others came, and how many streams failed.
func readAll(ctx context.Context, urls []string, count int, on func() error) (late []float64, failed int, err error) {
	type read struct {
		late []float64
		err  error
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
			late, err := ticks(resp.Body, count, first)
			reads <- read{late, err}
		}()
	}
	for range urls {
		<-firsts
	}
	if err := on(); err != nil {
		return nil, 0, err
	}
	for range urls {
		r := <-reads
		if r.err != nil {
			if failed++; failed == 1 {
				fmt.Fprintln(os.Stderr, "streams: one of them:", r.err)
			}
			continue
		}
		late = append(late, r.late[1:]...)
	}
	return late, failed, nil
}
