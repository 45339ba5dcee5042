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
			if err := p.show(p.live.release()); err != nil {
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
		p.early = append(p.early, earlier{whatOf(t), shown})
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
		if whatOf(tape[at]) != p.early[0].what {
			if slices.ContainsFunc(p.early, func(e earlier) bool { return e.shown }) {
				return fmt.Errorf("superstep: the run of thread %q went on from before what was streamed of it last: stream from "+
					"the offset of the last part, what comes behind it counts", p.request.Thread)
			}
			p.read, p.early = at, nil
			return nil
		}
		p.reader.Skip(tape[at])
		p.early = p.early[1:]
	}
	return nil
}

// whatOf names something on a tape.
func whatOf(t tape.Entry) string {
	what := fmt.Sprintf("%t %v %d %q", t.Began != nil, t.Event.Kind, t.Event.Step, t.Event.Namespace)
	if t.Event.Task != nil {
		what += " " + t.Event.Task.Key()
	}
	if t.Event.Checkpoint != nil {
		what += " " + t.Event.Checkpoint.Checkpoint.ID
	}
	return what
}

// result hands out what a task's result says it emitted, and has not come live.
func (p *playing) result(emitted []tape.Entry) error {
	given, void := p.live.recorded(emitted)
	for _, t := range emitted[:given] {
		p.reader.Skip(t)
		p.went(t, true)
	}
	if void {
		reset := tape.EmissionEvent(emitted[0].Event.Task, pregel.Emission{Kind: pregel.EmissionReset, Attempt: attemptIn(emitted)})
		if err := p.show([]pregel.Event{reset}); err != nil {
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

// show hands out what came live.
func (p *playing) show(events []pregel.Event) error {
	for _, e := range events {
		if err := p.hand(p.reader.Live(e)); err != nil {
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
