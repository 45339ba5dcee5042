package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
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
	of := pace{Count: 20, Every: 100, Size: 100, Gate: gate}
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
	readers, err := openAll(ctx, urls)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d open streams", count)
	t.stated(name+", until the last is open", "s", time.Since(begun).Seconds())
	after, err := resident(p.serve)
	if err != nil {
		return err
	}
	t.stated(name+", memory of serve for one", "KiB", (after-before)/float64(count))
	errors, err := readAll(readers, of.Count, open)
	if err != nil {
		return err
	}
	t.stated(name+", errors", "", float64(errors))
	return p.stop()
}

// readAll reads streams to their ends; it returns how many of them lack something.
func readAll(readers []io.ReadCloser, count int, open func() error) (failed int, err error) {
	failures := make(chan error, len(readers))
	var all errgroup.Group
	for _, r := range readers {
		all.Go(func() error {
			defer r.Close()
			_, err := ticks(r, count)
			failures <- err
			return nil
		})
	}
	if err := open(); err != nil {
		return 0, err
	}
	if err := all.Wait(); err != nil {
		return 0, err
	}
	close(failures)
	for err := range failures {
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, "streams:", err)
		}
	}
	return failed, nil
}
