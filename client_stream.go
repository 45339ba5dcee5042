package superstep

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"superstep.dev/graphadapter"
)

// Stream returns what a thread's runs stream, in LangGraph's modes and order: of each superstep the checkpoint, the
// start of its tasks, for each task that ends what it emitted, its update and its end, then the values. Namespace has
// one element "superstep/task" for each graph around the part.
//
// The stream begins with the thread's newest run, or behind From, follows what comes, and goes over to the next run of
// the thread. A run that was continued as a new one is one run with it. It ends when the thread waits for answers, stands still or has ended; the last part's Offset goes on from
// there, in any process, as long as the server keeps the run. Every part comes once and in the same order for every
// reader; a part is there when its event is durable, and never taken back.
//
// Graph modes are rebuilt from the run's history: nothing is stored for them, and any number of readers costs the
// server one long poll for each run and process (for more than 500 runs at a time a look a second). Custom and messages
// come with the node's result, before its update. What an attempt emitted that was then repeated comes too, followed by
// a part of mode StreamReset with the task's id: it voids what that task emitted before. With a [Transport] they come
// while the node runs, and not again with its result; such a part has the Offset of the part before it.
//
// Supersteps that run in one activity (async mode, [WithFused]) are streamed within a second after its heartbeat has
// stored them, before the history has them; these parts, too, have the Offset of the last part that it had. With the modes
// StreamTasks, StreamCheckpoints and StreamDebug, and in exit mode, they come when the activity has ended. The past of a
// run that is terminated meanwhile, not cancelled, does not have what was streamed so.
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
	reader  *streamReader
	live    *liveParts
	// emitted is what nodes emit while they run, nil without a transport.
	emitted <-chan LiveEmission
}

func (s *clientStream) run(ctx context.Context, from *streamOffset) error {
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
	s.reader, s.live = newStreamReader(s.request, run, nil), newLiveParts(run)
	for goesOn := false; err == nil && run != ""; {
		s.live.enter(run, goesOn)
		from = s.enter(run, from)
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

// enter goes over to a run. Nothing is handed out before the place from, which may be in a later run: it returns from, or
// nil once that is reached.
func (s *clientStream) enter(run string, from *streamOffset) *streamOffset {
	switch {
	case from == nil || from.run == run:
		s.reader.enter(run, from)
		return nil
	default:
		s.reader.enter(run, &streamOffset{run: run, event: math.MaxInt64})
		return from
	}
}

// listen subscribes to what nodes emit, if anybody wants it. Without it everything comes with the results.
func (s *clientStream) listen(ctx context.Context) {
	wanted := slices.Contains(s.request.Modes, StreamCustom) || slices.Contains(s.request.Modes, StreamMessages)
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
			return now.next, nil
		case now.rests:
			// The feed may be a moment behind what this reader's caller has just brought about.
			length, err := s.client.historyLength(ctx, s.request.Thread, run)
			if err != nil || length <= int64(now.events) {
				return "", err
			}
		}
		if err := p.await(ctx, now.changed); err != nil {
			return "", err
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
