package superstep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// chain is a thread's runs, newest first, as far as they have been fetched.
type chain struct{ runs []chainRun }

type chainRun struct {
	id     string
	in     protocol.GraphInput
	events []*historypb.HistoryEvent
}

// pastOf replays a thread's runs from the newest back to the one at which enough says so, or to the oldest that the
// server still has.
func (c *Client) pastOf(ctx context.Context, g *graphadapter.Graph, last *lastRun, enough func(*chain) bool) (*past.Past, error) {
	var ch chain
	for id := last.runID; id != ""; id = ch.runs[len(ch.runs)-1].in.Previous {
		run, err := c.fetchRun(ctx, last, id)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) && len(ch.runs) > 0 {
			break // beyond retention
		}
		if err != nil {
			return nil, c.explain(err, last.graph, last.thread)
		}
		ch.runs = append(ch.runs, run)
		if enough(&ch) {
			break
		}
	}
	past := past.NewPast()
	for _, run := range slices.Backward(ch.runs) {
		past.Clock = run.when
		if err := c.tail.ReplayEvents(last.thread, run.id, run.events, workflows.NewReader(g, past)); err != nil {
			return nil, c.explainReplay(err, last)
		}
	}
	return past, nil
}

// when is the time of an event; what the run says at a position happened when its workflow task began. It is as
// precise as what a run notes of its checkpoints: a millisecond.
func (r chainRun) when(at int64) time.Time {
	if at < 1 || at > int64(len(r.events)) {
		return time.Time{}
	}
	return madeAt(r.events[at-1].GetEventTime().AsTime().UnixMilli())
}

func (c *Client) fetchRun(ctx context.Context, last *lastRun, id string) (chainRun, error) {
	run := chainRun{id: id}
	var err error
	if run.events, err = c.tail.All(ctx, last.thread, id); err != nil {
		return run, err
	}
	if len(run.events) == 0 {
		return run, fmt.Errorf("run %s has no events", id)
	}
	started := run.events[0].GetWorkflowExecutionStartedEventAttributes()
	return run, c.decode(started.GetInput(), &run.in)
}

// pastWith replays the runs that are needed to know a checkpoint: the one that made it, and all since. Each run
// knows who made the checkpoints before it.
func (c *Client) pastWith(ctx context.Context, g *graphadapter.Graph, last *lastRun, checkpoint string) (*past.Past, error) {
	in, err := c.inputOf(ctx, last.thread, last.runID)
	if err != nil {
		return nil, err
	}
	if len(in.Lines) >= protocol.CarriedLines { // the newest run of a long thread may be all that it takes
		past, err := c.pastOf(ctx, g, last, func(*chain) bool { return true })
		if err != nil || past.Made(checkpoint) {
			return past, err
		}
	}
	made, noted := "", false
	past, err := c.pastOf(ctx, g, last, func(ch *chain) bool {
		oldest := ch.runs[len(ch.runs)-1]
		for _, l := range oldest.in.Lines {
			if l.Checkpoint == checkpoint {
				made, noted = l.Run, true
			}
		}
		if noted {
			return oldest.id == made
		}
		return len(oldest.in.Lines) < protocol.CarriedLines // it is of a run that is here, or of none
	})
	if err != nil {
		return nil, err
	}
	if _, ok, _ := past.Snapshot(checkpoint); !ok && noted {
		return nil, &Error{Kind: ErrNotFound, Graph: last.graph, Thread: last.thread,
			Message: fmt.Sprintf("checkpoint %q of thread %q is of run %s, which the server has no more", checkpoint, last.thread, made),
			Do:      "Choose a newer one", Command: []string{"history", last.thread}}
	}
	return past, nil
}

func (c *Client) explainReplay(err error, last *lastRun) error {
	var unreadable *workflows.UnreadableError
	if errors.As(err, &unreadable) {
		return &Error{Kind: ErrBadInput, Graph: last.graph, Thread: last.thread, Cause: unreadable,
			Message: fmt.Sprintf("the past of thread %q cannot be read here", last.thread)}
	}
	return c.explain(err, last.graph, last.thread)
}
