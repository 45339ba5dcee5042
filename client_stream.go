package superstep

import (
	"context"
	"errors"
	"iter"

	"superstep.dev/graphadapter"
)

// Stream returns what a thread's runs stream, in LangGraph's modes and order: of each superstep the checkpoint, the
// start of its tasks, for each task that ends what it emitted, its update and its end, then the values. Namespace has
// one element "superstep/task" for each graph around the part.
//
// The stream begins with the thread's newest run, or behind From, follows what comes, and goes over to the next run of
// the thread. It ends when the thread waits for answers, stands still or has ended; the last part's Offset goes on from
// there, in any process, as long as the server keeps the run. Every part comes once and in the same order for every
// reader; a part is there when its event is durable, and never taken back.
//
// Graph modes are rebuilt from the run's history: nothing is stored for them, and any number of readers costs the
// server one long poll for each run and process (for more than 500 runs at a time a look a second). Custom and messages
// come with the node's result, before its update. What an attempt emitted that was then repeated comes too, followed by
// a part of mode StreamReset with the task's id: it voids what that task emitted before. With a [Transport] they come
// while the node runs, and not again with its result; such a part has the Offset of the part before it.
//
// A run whose graph has reducers of its own can be streamed in a program that has the graph: by [Thread.Stream], or
// with ClientConfig.Graphs.
//
// Errors, the last that a stream gives: ErrBadInput for an unknown mode, an offset that is none, or a run that cannot
// be read here; ErrNotFound; ErrNoServer; the cause of ctx. The offset of the last part stays good.
func (c *Client) Stream(ctx context.Context, r StreamRequest) iter.Seq2[StreamPart, error] {
	return c.streamRun(ctx, nil, r)
}

func (c *Client) streamRun(ctx context.Context, g *graphadapter.Graph, r StreamRequest) iter.Seq2[StreamPart, error] {
	from, err := checkStream(&r)
	if err != nil {
		return failedStream(err)
	}
	return func(yield func(StreamPart, error) bool) {
		s := &clientStream{client: c, graph: g, request: r, yield: yield}
		if err := s.run(ctx, from); err != nil && !errors.Is(err, errStreamLeft) {
			yield(StreamPart{}, err)
		}
	}
}

// errStreamLeft says that the reader wants no more.
var errStreamLeft = errors.New("the reader has left")

// clientStream is one reader's way through the runs of a thread.
type clientStream struct {
	client  *Client
	graph   *graphadapter.Graph
	request StreamRequest
	yield   func(StreamPart, error) bool
}

func (s *clientStream) run(ctx context.Context, from *streamOffset) error {
	last, err := s.client.theLastRun(ctx, s.request.Thread)
	if err != nil {
		return err
	}
	if s.graph == nil {
		s.graph = s.client.known(last.graph)
	}
	run, err := s.client.firstStreamed(ctx, last, from)
	for err == nil && run != "" {
		if err = s.play(ctx, run, from); err == nil {
			run, err = s.client.runAfter(ctx, s.request.Thread, run)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// play hands out what a run streams, until it has ended or stands still.
func (s *clientStream) play(ctx context.Context, run string, from *streamOffset) error {
	feed, leave := s.client.feeds.join(s.client, feedKey{s.request.Thread, run, s.graph})
	defer leave()
	reader, read := newStreamReader(s.request, run, from), 0
	for {
		now := feed.now()
		for _, t := range now.tape[read:] {
			if err := s.hand(reader.read(t)); err != nil {
				return err
			}
		}
		read = len(now.tape)
		switch {
		case now.err != nil:
			return s.client.explainStream(now.err, s.request.Thread)
		case now.closed:
			return nil
		case now.rests:
			// The feed may be a moment behind what this reader's caller has just brought about.
			length, err := s.client.historyLength(ctx, s.request.Thread, run)
			if err != nil {
				return err
			}
			if length <= int64(now.events) {
				return nil
			}
		}
		select {
		case <-now.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hand gives parts to the reader.
func (s *clientStream) hand(parts []StreamPart, err error) error {
	for _, p := range parts {
		if !s.yield(p, nil) {
			return errStreamLeft
		}
	}
	return err
}
