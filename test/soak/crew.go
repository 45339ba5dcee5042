package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"superstep.dev/test/processes"
)

// patience is how long a worker may take to start.
const patience = 5 * time.Minute

// crew are the workers.
type crew struct {
	set     *processes.Set
	dir     string
	address string
	queue   string
	every   time.Duration

	began     atomic.Int64 // lives
	kills     atomic.Int64
	continues atomic.Int64 // kills at a continue
}

// moments are where workers die besides at their time, one after the other.
var moments = []string{"", beforeContinue, afterContinue}

// keep keeps workers running until ctx ends. Each is killed when it has lived for so many intervals as there are workers,
// shifted so that there is one kill in each interval; or at its moment, if that comes first.
func (c *crew) keep(ctx context.Context, workers int, stop context.CancelCauseFunc) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for life := time.Duration(i+1) * c.every; ctx.Err() == nil; life = time.Duration(workers) * c.every {
				if err := c.life(ctx, life); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	return &all
}

// life is one worker's.
func (c *crew) life(ctx context.Context, long time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ready, reached := make(chan struct{}), make(chan struct{})
	p, err := c.set.Start(ctx, processes.Command{Name: "worker", Path: self, Env: append(os.Environ(), "TEMPORAL_CONFIG_FILE="+c.dir+"/temporal.toml"),
		Args:   []string{workerCommand, "-address", c.address, "-queue", c.queue, "-die", moments[c.began.Add(1)%int64(len(moments))]},
		Output: &lines{on: map[string]func(){lineReady: func() { close(ready) }, lineReached: sync.OnceFunc(func() { close(reached) })}}})
	if err != nil {
		return err
	}
	select {
	case <-ready:
	case <-time.After(patience):
		return fmt.Errorf("a worker takes no tasks after %v", patience)
	case <-ctx.Done():
		return p.Kill()
	}
	select {
	case <-reached:
		c.continues.Add(1)
	case <-time.After(long):
	case <-ctx.Done():
		return p.Kill()
	}
	c.kills.Add(1)
	return p.Kill()
}

// lines calls for each line of a process that is known.
type lines struct {
	on   map[string]func()
	rest []byte // of a line that has not ended
}

// Write implements io.Writer.
func (l *lines) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		l.rest = rest
		if on := l.on[string(line)]; on != nil {
			on()
		}
	}
}
