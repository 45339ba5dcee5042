package superstep

import (
	"context"
	"fmt"
	"slices"

	"superstep.dev/graphadapter/pregel"
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
func (p *playing) hear(tape []taped) error {
	if err := p.settle(tape); err != nil {
		return err
	}
	for p.read < len(tape) {
		if tape[p.read].ahead && !p.reader.early() {
			return nil
		}
		if emitted := sameTask(tape[p.read:]); emitted > 0 {
			if err := p.result(tape[p.read : p.read+emitted]); err != nil {
				return err
			}
			continue
		}
		t := tape[p.read]
		parts, err := p.reader.read(t)
		if err := p.hand(parts, err); err != nil {
			return err
		}
		p.went(t, len(parts) > 0)
		if err := p.show(p.live.tells(t)); err != nil {
			return err
		}
		if p.live.held && p.reader.begun() {
			if err := p.show(p.live.release()); err != nil {
				return err
			}
		}
	}
	return nil
}

// went goes on to the next thing on the tape.
func (p *playing) went(t taped, shown bool) {
	p.read++
	if t.ahead {
		p.early = append(p.early, earlier{whatOf(t), shown})
	}
}

// settle passes over what was read before and is told by now. It is the same, but for the end: a run that is asked to stop
// ends where a segment would have gone on.
func (p *playing) settle(tape []taped) error {
	for len(p.early) > 0 {
		at := p.read - len(p.early)
		if at >= len(tape) || tape[at].ahead {
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
		p.reader.skip(tape[at])
		p.early = p.early[1:]
	}
	return nil
}

// whatOf names something on a tape.
func whatOf(t taped) string {
	what := fmt.Sprintf("%t %v %d %q", t.began != nil, t.event.Kind, t.event.Step, t.event.Namespace)
	if t.event.Task != nil {
		what += " " + t.event.Task.Key()
	}
	if t.event.Checkpoint != nil {
		what += " " + t.event.Checkpoint.Checkpoint.ID
	}
	return what
}

// result hands out what a task's result says it emitted, and has not come live.
func (p *playing) result(emitted []taped) error {
	given, void := p.live.recorded(emitted)
	for _, t := range emitted[:given] {
		p.reader.skip(t)
		p.went(t, true)
	}
	if void {
		reset := emissionEvent(emitted[0].event.Task, pregel.Emission{Kind: pregel.EmissionReset, Attempt: attemptIn(emitted)})
		if err := p.show([]pregel.Event{reset}); err != nil {
			return err
		}
	}
	for _, t := range emitted[given:] {
		parts, err := p.reader.read(t)
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
		if err := p.hand(p.reader.live(e)); err != nil {
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
