package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"superstep.dev/test/processes"
)

// workerCommand makes this program a worker.
const workerCommand = "worker"

const (
	// longLife is when a worker is killed that does not reach its moment.
	longLife = 4 * time.Second
	// shortLife is the least time that a worker works before it is killed at random.
	shortLife = 200 * time.Millisecond
	tick      = 10 * time.Millisecond
)

// crew are the workers of one task queue.
type crew struct {
	world *world
	queue string

	mu      sync.Mutex
	ready   map[int]bool           // workers that take tasks, by process id
	hands   map[int]map[string]int // how many activities of which threads each has
	waiting map[string]time.Time   // threads that a kill interrupted, until they go on
	again   int                    // activities begun that had been begun before
	pauses  []time.Duration        // from a kill to the thread's next progress
	heard   map[word]bool          // what else workers told
	books   *books
}

func (w *world) crew(queue string) *crew {
	return &crew{world: w, queue: queue, ready: map[int]bool{}, hands: map[int]map[string]int{},
		waiting: map[string]time.Time{}, heard: map[word]bool{}, books: newBooks()}
}

// word is what a worker told of a thread.
type word struct {
	what, thread string
	pid          int
}

// worker is one process, and what it tells of itself.
type worker struct {
	*processes.Process
	ready   chan struct{}
	reached chan struct{}
}

// start starts this very program as a worker.
func (c *crew) start(ctx context.Context, flags ...string) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{ready: make(chan struct{}), reached: make(chan struct{})}
	on := func(n notice) {
		switch n.What {
		case noticeReady:
			close(w.ready)
		case noticeReached:
			close(w.reached)
		}
		c.hear(n)
	}
	args := append([]string{workerCommand, "-address", c.world.address, "-queue", c.queue, "-payments", c.world.payURL}, flags...)
	w.Process, err = c.world.set.Start(ctx, processes.Command{Name: "worker", Path: self, Args: args, Env: environment(c.world.dir),
		Output: &listener{on: on}})
	if err != nil {
		return nil, err
	}
	select {
	case <-w.ready:
		return w, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("a worker takes no tasks after %v", patience)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hear takes in what a worker says.
func (c *crew) hear(n notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.books.hear(n)
	switch n.What {
	case noticeReady:
		c.ready[n.PID], c.hands[n.PID] = true, map[string]int{}
	case noticeBegin:
		c.goesOn(n.Thread, n.at())
		if hands := c.hands[n.PID]; hands != nil {
			hands[n.Thread]++
		}
		if n.Attempt > 1 {
			c.again++
		}
	case noticeEnd:
		c.goesOn(n.Thread, n.at())
		if hands := c.hands[n.PID]; hands != nil {
			hands[n.Thread]--
		}
	case noticeHeld, noticeSends, noticeBack, noticeRefused, noticeTaken:
		c.heard[word{n.What, n.Thread, n.PID}] = true
	}
}

// of returns of which threads a worker told something.
func (c *crew) of(pid int, what string) (threads []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.heard {
		if w.pid == pid && w.what == what {
			threads = append(threads, w.thread)
		}
	}
	return threads
}

// await waits until a worker has told something of that many threads, and returns of how many it did in the time.
func (c *crew) await(ctx context.Context, pid int, what string, threads int, within time.Duration) (int, error) {
	late := time.After(within)
	for {
		told := len(c.of(pid, what))
		if told >= threads {
			return told, nil
		}
		select {
		case <-time.After(tick):
		case <-late:
			return told, nil
		case <-ctx.Done():
			return told, context.Cause(ctx)
		}
	}
}

// goesOn ends the pause of a thread that a kill interrupted.
func (c *crew) goesOn(thread string, at time.Time) {
	killed, was := c.waiting[thread]
	if !was || at.Before(killed) { // the line of something that had happened before
		return
	}
	delete(c.waiting, thread)
	c.pauses = append(c.pauses, at.Sub(killed))
}

// stood tells that a thread waits for a person, or has ended: it is not the kill that keeps it.
func (c *crew) stood(thread string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.goesOn(thread, time.Now())
}

// kill kills a worker as soon as another one is there to go on.
func (c *crew) kill(ctx context.Context, w *worker) error {
	for !c.mayGo(w.PID()) {
		select {
		case <-time.After(tick):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return w.Kill()
}

// mayGo takes a worker out of the crew if it is not the last, and starts the clock of the threads that it had in hand.
// It is killed at once after that.
func (c *crew) mayGo(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ready) < 2 {
		return false
	}
	now := time.Now()
	for thread, n := range c.hands[pid] {
		if _, already := c.waiting[thread]; n > 0 && !already {
			c.waiting[thread] = now
		}
	}
	c.books.killed[pid] = true
	delete(c.ready, pid)
	delete(c.hands, pid)
	return true
}

// life is one worker's: it is born, works, and is killed. It reports whether it died at a chosen moment.
func (c *crew) life(ctx context.Context, random *rand.Rand) (chosen bool, err error) {
	var flags []string
	if random.IntN(2) == 0 {
		moment := []string{"before ", "after "}[random.IntN(2)] + points[random.IntN(len(points))]
		flags = []string{"-die", moment, "-count", fmt.Sprint(1 + random.IntN(4))}
	}
	w, err := c.start(ctx, flags...)
	if err != nil {
		return false, err
	}
	life := longLife
	if flags == nil {
		life = shortLife + time.Duration(random.Int64N(int64(longLife/2)))
	}
	select {
	case <-w.reached:
		chosen = true
	case <-time.After(life):
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return chosen, c.kill(ctx, w)
}

// environment is this process's own without a Temporal connection or configuration of somebody else's.
func environment(dir string) []string {
	return append(os.Environ(), "TEMPORAL_CONFIG_FILE="+dir+"/temporal.toml")
}

// freeze stops a process where it stands, and thaw lets it go on.
func (w *worker) freeze() error { return syscall.Kill(w.PID(), syscall.SIGSTOP) }
func (w *worker) thaw() error   { return syscall.Kill(w.PID(), syscall.SIGCONT) }
