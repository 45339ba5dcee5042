package superstep

import (
	"context"
	"iter"
	"slices"
)

// StreamOption shapes [Thread.Stream]. Each [StreamMode] is one: it asks for that mode.
type StreamOption interface{ applyStream(*StreamRequest) }

type streamOption func(*StreamRequest)

func (o streamOption) applyStream(r *StreamRequest) { o(r) }

func (m StreamMode) applyStream(r *StreamRequest) { r.Modes = append(r.Modes, m) }

// StreamFrom goes on behind the part of that offset, in any process.
func StreamFrom(offset string) StreamOption {
	return streamOption(func(r *StreamRequest) { r.From = offset })
}

// StreamSubgraphs streams subgraphs too; [StreamPart].Namespace tells them apart.
func StreamSubgraphs() StreamOption {
	return streamOption(func(r *StreamRequest) { r.Subgraphs = true })
}

// Stream returns what the thread's runs stream, in the given modes or StreamUpdates: from the beginning of its newest
// run, or behind an offset. It follows a run under way, and ends when the thread waits for answers, stands still or has
// ended; the last part's Offset goes on from there later. See [Client.Stream] for the order, the payloads and the
// guarantees, which are the same on every runtime.
func (t *Thread[Out]) Stream(ctx context.Context, opts ...StreamOption) iter.Seq2[StreamPart, error] {
	r := StreamRequest{Thread: t.id}
	for _, o := range opts {
		o.applyStream(&r)
	}
	return t.runtime.streamRun(ctx, t.graph, r)
}

// streamModes are the modes that can be asked for.
var streamModes = []StreamMode{StreamValues, StreamUpdates, StreamMessages, StreamCustom, StreamTasks, StreamCheckpoints, StreamDebug}

// checkStream refuses unknown modes and offsets, and puts in the default mode. It returns the offset to begin behind, nil
// for none.
func checkStream(r *StreamRequest) (*streamOffset, error) {
	if len(r.Modes) == 0 {
		r.Modes = []StreamMode{StreamUpdates}
	}
	for _, m := range r.Modes {
		if !slices.Contains(streamModes, m) {
			return nil, &Error{Kind: ErrBadInput, Thread: r.Thread, Message: "unknown stream mode " + quote(string(m)) +
				": there are values, updates, messages, custom, tasks, checkpoints and debug"}
		}
	}
	if r.From == "" {
		return nil, nil
	}
	from, err := parseOffset(r.Thread, r.From)
	return &from, err
}

// failedStream is a stream that has nothing but an error.
func failedStream(err error) iter.Seq2[StreamPart, error] {
	return func(yield func(StreamPart, error) bool) { yield(StreamPart{}, err) }
}
