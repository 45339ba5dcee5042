package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/internal/tape"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// StreamRun implements runtime.Runtime.
func (c *Threads) StreamRun(ctx context.Context, g *graphadapter.Graph, r thread.StreamRequest) iter.Seq2[thread.Part, error] {
	from, err := tape.CheckStream(&r)
	if err != nil {
		return tape.FailedStream(err)
	}
	return func(yield func(thread.Part, error) bool) {
		s := &clientStream{client: c, graph: g, request: r, yield: yield}
		if err := s.run(ctx, from); err != nil && !errors.Is(err, errStreamLeft) && !errors.Is(err, tape.ErrOver) {
			yield(thread.Part{}, err)
		}
	}
}

// Offset is the place behind all that a thread had streamed at the moment of a view.
func Offset(v thread.View) string { return tape.Behind(v.Thread, v.RunID, v.Events) }

// errStreamLeft says that the reader wants no more.
var errStreamLeft = errors.New("the reader has left")

// clientStream is one reader's way through the runs of a thread.
type clientStream struct {
	client  *Threads
	graph   *graphadapter.Graph
	request thread.StreamRequest
	yield   func(thread.Part, error) bool
	reader  *tape.Reader
	live    *liveParts
	// emitted is what nodes emit while they run, nil without a transport.
	emitted <-chan live.Emission
}

func (s *clientStream) run(ctx context.Context, from *tape.Offset) error {
	last, err := s.client.theLastRun(ctx, s.request.Thread)
	if err != nil {
		return err
	}
	if s.graph == nil {
		s.graph = s.client.known(last.graph)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.listen(ctx)
	run, err := s.client.firstStreamed(ctx, last, from, needsPast(s.request))
	s.reader, s.live = tape.NewReader(s.request, run, nil), newLiveParts(run, s.request.Ordered)
	for goesOn := false; err == nil && run != ""; {
		s.live.Enter(run, goesOn)
		from = s.Enter(run, from)
		var next string
		next, err = s.play(ctx, run)
		if goesOn = next != ""; !goesOn && err == nil {
			next, err = s.client.runAfter(ctx, s.request.Thread, run)
		}
		run = next
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Enter goes over to a run. Nothing is handed out before the place from, which may be in a later run: it returns from, or
// nil once that is reached.
func (s *clientStream) Enter(run string, from *tape.Offset) *tape.Offset {
	switch {
	case from == nil || from.Run == run:
		s.reader.Enter(run, from)
		return nil
	default:
		s.reader.Enter(run, &tape.Offset{Run: run, Event: math.MaxInt64})
		return from
	}
}

// listen subscribes to what nodes emit, if anybody wants it. Without it everything comes with the results.
func (s *clientStream) listen(ctx context.Context) {
	wanted := slices.Contains(s.request.Modes, thread.StreamCustom) || slices.Contains(s.request.Modes, thread.StreamMessages)
	if s.client.cfg.Transport == nil || !wanted {
		return
	}
	if emitted, err := s.client.cfg.Transport.Subscribe(ctx, s.request.Thread); err == nil {
		s.emitted = emitted
	}
}

// play hands out what a run streams, until it has ended or stands still. It returns the run that it was continued as, ""
// when it was not.
func (s *clientStream) play(ctx context.Context, run string) (next string, err error) {
	feed, leave := s.client.feeds.join(s.client, feedKey{s.request.Thread, run, s.graph})
	defer leave()
	p := &playing{clientStream: s}
	for {
		now := feed.now()
		if err := p.hear(now.tape); err != nil {
			return "", err
		}
		switch {
		case now.err != nil:
			return "", s.client.explainStream(now.err, s.request.Thread)
		case now.closed:
			return now.next, p.hand(p.reader.Left(), nil)
		case now.rests:
			// The feed may be a moment behind what this reader's caller has just brought about.
			length, err := s.client.historyLength(ctx, s.request.Thread, run)
			if err != nil || length <= int64(now.events) {
				return "", p.hand(p.reader.Left(), err)
			}
		}
		if err := p.await(ctx, now.changed); err != nil {
			return "", err
		}
	}
}

// hand gives parts to the reader.
func (s *clientStream) hand(parts []thread.Part, err error) error {
	for _, p := range parts {
		if !s.yield(p, nil) {
			return errStreamLeft
		}
	}
	return err
}

// needsPast reports whether what a run gives to stream depends on what happened before it was continued as a new one:
// which messages are news, and what is around a subgraph.
func needsPast(r thread.StreamRequest) bool {
	return slices.Contains(r.Modes, thread.StreamMessages) ||
		r.Subgraphs && (slices.Contains(r.Modes, thread.StreamCheckpoints) || slices.Contains(r.Modes, thread.StreamDebug))
}

// firstStreamed returns the run where a stream of a thread begins, or with past where the invocation began that goes on
// there. What the server has no more is left out.
func (c *reader) firstStreamed(ctx context.Context, last *lastRun, from *tape.Offset, past bool) (string, error) {
	if from == nil {
		_, err := c.historyLength(ctx, last.thread, last.first)
		if errors.Is(err, thread.ErrNotFound) {
			return last.runID, nil
		}
		return last.first, err
	}
	length, err := c.historyLength(ctx, last.thread, from.Run)
	if err == nil && from.Event > length {
		err = &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: last.thread,
			Message: fmt.Sprintf("the offset is behind event %d of a run that has %d", from.Event, length)}
	}
	if err != nil || !past {
		return from.Run, err
	}
	in, err := c.inputOf(ctx, last.thread, from.Run)
	if err != nil || in.Carried == nil || in.Carried.Began == "" {
		return from.Run, err
	}
	if _, err = c.historyLength(ctx, last.thread, in.Carried.Began); errors.Is(err, thread.ErrNotFound) {
		return from.Run, nil
	}
	return in.Carried.Began, err
}

// runAfter returns the run that continued a run of a thread, "" when none did.
func (c *reader) runAfter(ctx context.Context, threadID, run string) (string, error) {
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return "", err
	}
	after := ""
	for at := last.runID; at != run; {
		before, err := c.runBefore(ctx, threadID, at)
		if err != nil {
			return "", err
		}
		if before == "" {
			return "", &thread.Error{Kind: thread.ErrNotFound, Graph: last.graph, Thread: threadID,
				Message: fmt.Sprintf("what thread %q ran after run %s is no longer known", threadID, run),
				Do:      "Stream without an offset to begin with its newest run"}
		}
		after, at = at, before
	}
	return after, nil
}

// runBefore returns the run that a run continued, "" for the thread's first.
func (c *reader) runBefore(ctx context.Context, thread, run string) (string, error) {
	started, err := c.startOf(ctx, thread, run)
	if before := started.GetContinuedExecutionRunId(); before != "" || err != nil {
		return before, err
	}
	var in protocol.GraphInput
	err = c.decode(started.GetInput(), &in)
	return in.Previous, err
}

// explainStream says why a run cannot be streamed.
func (c *reader) explainStream(err error, threadID string) error {
	var unreadable *workflows.UnreadableError
	if errors.As(err, &unreadable) {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: unreadable.Graph, Thread: threadID, Cause: err,
			Message: "the thread's run cannot be read here", Do: "Run this from the program that has the graph"}
	}
	return c.explain(err, "", threadID)
}
