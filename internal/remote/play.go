package remote

import (
	"context"
	"fmt"
	"slices"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/tape"
)

// playing is one reader's way through one run.
type playing struct {
	*clientStream
	read int // of the tape
	// early is the end of what was read, which the history had not told then.
	early []earlier
}

// earlier is something that was read before the history told it: what it was, and whether it gave a part.
type earlier struct {
	what  string
	shown bool
}

// hear hands out what has been told since the last time.
func (p *playing) hear(tape []tape.Entry) error {
	if err := p.settle(tape); err != nil {
		return err
	}
	for p.read < len(tape) {
		if tape[p.read].Ahead && !p.reader.Early() {
			return nil
		}
		if emitted := sameTask(tape[p.read:]); emitted > 0 {
			if err := p.result(tape[p.read : p.read+emitted]); err != nil {
				return err
			}
			continue
		}
		t := tape[p.read]
		parts, err := p.reader.Read(t)
		if err := p.hand(parts, err); err != nil {
			return err
		}
		p.went(t, len(parts) > 0)
		if err := p.show(p.live.tells(t)); err != nil {
			return err
		}
		if p.live.held && p.reader.Begun() {
			if err := p.release(); err != nil {
				return err
			}
		}
	}
	return nil
}

// went goes on to the next thing on the tape.
func (p *playing) went(t tape.Entry, shown bool) {
	p.read++
	if t.Ahead {
		p.early = append(p.early, earlier{t.What(), shown})
	}
}

// settle passes over what was read before and is told by now. It is the same, but for the end: a run that is asked to stop
// ends where a segment would have gone on.
func (p *playing) settle(tape []tape.Entry) error {
	for len(p.early) > 0 {
		at := p.read - len(p.early)
		if at >= len(tape) || tape[at].Ahead {
			return nil
		}
		if tape[at].What() != p.early[0].what {
			if slices.ContainsFunc(p.early, func(e earlier) bool { return e.shown }) {
				return fmt.Errorf("superstep: the run of thread %q went on from before what was streamed of it last: stream from "+
					"the offset of the last part, what comes behind it counts", p.request.Thread)
			}
			p.reader.Retract(len(p.early))
			p.read, p.early = at, nil
			return nil
		}
		p.early = p.early[1:]
		p.reader.Settle(tape[at], len(p.early))
	}
	return nil
}

// result hands out what a task's result says it emitted, and has not come live.
func (p *playing) result(emitted []tape.Entry) error {
	given, void := p.live.recorded(emitted)
	key := emitted[0].Event.Task.Key()
	for _, t := range emitted[:given] {
		p.reader.Skip(t)
		p.went(t, true)
		if p.live.tasks[key].resumed {
			if err := p.reader.Hide(t); err != nil {
				return err
			}
		}
	}
	if void {
		reset := tape.EmissionEvent(emitted[0].Event.Task, pregel.Emission{Kind: pregel.EmissionReset, Attempt: attemptIn(emitted)})
		if err := p.show([]livePart{{Event: reset, has: tape.NothingEmitted.With(reset)}}); err != nil {
			return err
		}
	}
	for _, t := range emitted[given:] {
		parts, err := p.reader.Read(t)
		if err := p.hand(parts, err); err != nil {
			return err
		}
		p.went(t, len(parts) > 0)
	}
	return nil
}

// release begins to hand out what tasks under way emit, after what the reader had when it reconnected.
func (p *playing) release() error {
	parts := p.live.release(p.reader.Had)
	for key := range p.live.tasks {
		if had, ok := p.reader.Had(key); ok {
			p.reader.Have(key, had)
		}
	}
	return p.show(parts)
}

// show hands out what came live.
func (p *playing) show(parts []livePart) error {
	for _, part := range parts {
		var err error
		if part.had {
			err = p.reader.Hide(tape.Entry{Event: part.Event})
		} else {
			err = p.hand(p.reader.Live(part.Event, part.has))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// await waits until the history tells more, and meanwhile hands out what comes live.
func (p *playing) await(ctx context.Context, changed <-chan struct{}) error {
	for {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, open := <-p.emitted:
			if !open {
				p.emitted = nil
				continue
			}
			if err := p.show(p.live.take(e)); err != nil {
				return err
			}
		}
	}
}
