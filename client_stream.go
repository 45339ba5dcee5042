package superstep

import (
	"context"
	"iter"

	"superstep.dev/graphadapter"
)

// Stream returns what a thread's runs stream.
//
// Errors: ErrBadInput, ErrNotFound, ErrNoServer.
func (c *Client) Stream(ctx context.Context, r StreamRequest) iter.Seq2[StreamPart, error] {
	return c.streamRun(ctx, nil, r)
}

func (c *Client) streamRun(_ context.Context, _ *graphadapter.Graph, r StreamRequest) iter.Seq2[StreamPart, error] {
	if _, err := checkStream(&r); err != nil {
		return failedStream(err)
	}
	return failedStream(&Error{Kind: ErrBadInput, Thread: r.Thread, Message: "streams of threads on Temporal are not there yet"})
}
