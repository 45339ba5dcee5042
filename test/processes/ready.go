package processes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// readyPoll is the time between two looks whether a process is ready.
const readyPoll = 20 * time.Millisecond

// Said returns what the process said when it got ready: the content of its ReadyFile without the space around it, then
// the ReadyLine and its submatches.
func (p *Process) Said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said
}

// awaitReady returns once the process is ready.
func (p *Process) awaitReady(ctx context.Context) error {
	within := p.command.readyWithin()
	ctx, cancel := context.WithTimeoutCause(ctx, within, &NotReadyError{Name: p.Name(), After: within, Log: p.Log()})
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		said, ready, err := p.look()
		if err != nil {
			return fmt.Errorf("see whether %s is ready: %w", p.Name(), err)
		}
		if ready {
			p.mu.Lock()
			p.said = said
			p.mu.Unlock()
			return nil
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return p.exitError()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look reads what the process has said so far.
func (p *Process) look() (said []string, ready bool, err error) {
	if p.command.ReadyFile != "" {
		text, err := os.ReadFile(p.command.ReadyFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		said = append(said, strings.TrimSpace(string(text)))
	}
	if p.command.ReadyLine != nil {
		text, err := p.output()
		if err != nil {
			return nil, false, err
		}
		line := lineLike(p.command.ReadyLine, text)
		if line == nil {
			return nil, false, nil
		}
		said = append(said, line...)
	}
	return said, true, nil
}
