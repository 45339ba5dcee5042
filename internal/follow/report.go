// Package follow reports a run to people who follow it: what its history tells, and in between what the server says of the tasks under way.
package follow

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"superstep.dev/internal/history"
	"superstep.dev/thread"
)

// Report is a run that somebody follows. Its methods may be called from several goroutines.
type Report struct {
	mu    sync.Mutex
	on    func(thread.Progress)
	lines func(history.Step) []thread.Progress
	sends map[string]*sent
	// spoke says that something was reported since the last look, and ended are the tasks that ended since it began.
	spoke bool
	ended map[string]bool
	// told are, by task, the newest attempt that was reported, and how long the task was under way then.
	told map[string]toldAttempt
}

// sent are the tasks that Sends made for one superstep and one node.
type sent struct{ of, left int }

// New returns a report to on; lines makes the progresses of a step of the history.
func New(lines func(history.Step) []thread.Progress, on func(thread.Progress)) *Report {
	return &Report{on: on, lines: lines, sends: map[string]*sent{}, told: map[string]toldAttempt{}}
}

// toldAttempt is what was reported of a task under way.
type toldAttempt struct {
	number int
	worked time.Duration
}

const (
	// watchEvery is how often the server is asked for the tasks under way while nothing else happens.
	watchEvery = time.Second
	// longWork is after how long a task under way is reported; it is reported again after four times as long.
	longWork = 5 * time.Second
)

// Step reports a step of the history.
func (s *Report) Step(step history.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoke = true
	key := step.Task
	space, place := splitKey(key)
	_, path, _ := strings.Cut(place, "/")
	isSend := strings.Contains(path, ":")
	for _, p := range s.lines(step) {
		if isSend {
			p.Send = true
			if made := s.sends[sendKey(space, p.Step, p.Node)]; made != nil {
				p.Of = made.of
			}
		}
		s.on(p)
	}
	if step.Started {
		return
	}
	if s.ended != nil {
		s.ended[history.WithoutBranch(key)] = true
	}
	delete(s.told, history.WithoutBranch(key))
	if isSend {
		s.count(sendKey(space, step.Request.Task.Step, step.Request.Task.Node), 0)
	}
	if step.Outcome != nil {
		for _, t := range append(step.Outcome.Goto[:len(step.Outcome.Goto):len(step.Outcome.Goto)], step.Outcome.Routes...) {
			if t.Send {
				s.count(sendKey(space, step.Request.Task.Step+1, t.Node), 1)
			}
		}
	}
}

// count adds Sends that a task made; 0 takes away one of which the task ended.
func (s *Report) count(key string, made int) {
	counted := s.sends[key]
	if counted == nil {
		if made == 0 {
			return
		}
		counted = &sent{}
		s.sends[key] = counted
	}
	if made == 0 {
		if counted.left--; counted.left <= 0 {
			delete(s.sends, key)
		}
		return
	}
	counted.of += made
	counted.left += made
}

// splitKey returns the namespace of a task's graph, and the task's place in it.
func splitKey(key string) (space, place string) {
	at := strings.LastIndexByte(key, '|')
	return key[:at+1], key[at+1:]
}

func sendKey(space string, step int, node string) string {
	return fmt.Sprintf("%s%d/%s", space, step, node)
}

// Server is asked about the tasks under way.
type Server struct {
	// UnderWay returns them.
	UnderWay func(ctx context.Context) ([]history.Attempt, error)
	// Named is a progress of a segment that has stored nothing yet, with the nodes that it runs; none when nobody can tell.
	Named func(ctx context.Context, p thread.Progress) []thread.Progress
}

// Watch asks the server for the tasks under way until stop is called, or ctx ends.
func (s *Report) Watch(ctx context.Context, server Server) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if s.quiet() {
					s.look(ctx, server)
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// quiet reports whether nothing was reported since the last call, and begins to note which tasks end.
func (s *Report) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := !s.spoke
	s.spoke, s.ended = false, map[string]bool{}
	return quiet
}

// look reports the tasks under way of which there is news. An error is left to the history, which is read at the same time.
func (s *Report) look(ctx context.Context, server Server) {
	all, err := server.UnderWay(ctx)
	if err != nil {
		return
	}
	for _, a := range all {
		state, worked := s.news(a)
		if state == "" {
			continue
		}
		p := thread.Progress{Step: a.Step, Node: a.Node, State: state, Error: a.Failed, RetryAt: a.RetryAt, Done: a.Done, Task: a.Task}
		if state == thread.ProgressRetrying {
			p.Attempt = a.Number
		} else {
			p.Duration = worked
		}
		lines := []thread.Progress{p}
		if p.Node == "" && p.Done == 0 {
			lines = server.Named(ctx, p)
		}
		s.report(a, worked, lines)
	}
}

// news returns the state to report of a task under way, empty for none, and how long the task has been under way.
func (s *Report) news(a history.Attempt) (state string, worked time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !a.Began.IsZero() {
		worked = time.Since(a.Began).Round(time.Second)
	}
	before := s.told[a.Task]
	switch {
	case s.ended[a.Task]:
		return "", 0
	case a.Number > max(before.number, 1):
		return thread.ProgressRetrying, worked
	case worked >= longWork && worked >= 4*before.worked && !a.RetryAt.After(time.Now()):
		return thread.ProgressWorking, worked
	}
	return "", 0
}

// report reports a task under way unless the task has ended since the server was asked.
func (s *Report) report(a history.Attempt, worked time.Duration, all []thread.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended[a.Task] || len(all) == 0 {
		return
	}
	s.told[a.Task] = toldAttempt{number: a.Number, worked: worked}
	for _, p := range all {
		s.on(p)
	}
}
