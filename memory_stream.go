package superstep

import (
	"context"
	"iter"

	"superstep.dev/graphadapter"
)

func (m *Memory) streamRun(_ context.Context, _ *graphadapter.Graph, r StreamRequest) iter.Seq2[StreamPart, error] {
	if err := checkStream(&r); err != nil {
		return failedStream(err)
	}
	return failedStream(&Error{Kind: ErrBadInput, Thread: r.Thread, Message: "streams of threads in memory are not there yet"})
}
