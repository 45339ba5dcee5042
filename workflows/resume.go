package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/workflows/protocol"
)

// resumeBefore is how many supersteps of a segment the run delivers to its own loop at least, when it passes over those
// before: as many as it shows to the thread's next run. In exit mode that is the last checkpoint alone.
func (s *segments) resumeBefore() int {
	switch {
	case s.in.Spec.HasOwnReducers(): // each worker's own may differ, and only the run's own engine tells
		return 0
	case s.durability() == graphadapter.DurabilityExit:
		return 1
	}
	return protocol.CarriedLines
}

// passOver goes on from the resume point of a segment, if there is one: its state is what the outcomes before it come to, and the
// checkpoints that they made are made again for whoever asks. A reader of the run's history delivers all of them. It returns
// the outcomes that are to be delivered, and the tasks handed out.
func (s *segments) passOver(ctx workflow.Context, under *segmentRun) (segment.Result, []*pregel.Task) {
	point := under.result.Resume
	if point == nil || s.sink != nil {
		whole, err := under.result.Whole()
		if err != nil {
			panic(err.Error())
		}
		return whole, under.ready
	}
	loop, err := s.program.Restore(point.Loop, s.observe)
	if err != nil {
		panic(err.Error())
	}
	if s.durability() != graphadapter.DurabilityExit {
		at := workflow.Now(ctx)
		s.checkpoints.passOver(func() []protocol.Line { return s.linesBefore(under, at) })
	}
	s.loop, s.thread = loop, loop.Thread()
	return under.result.Result, loop.Ready()
}

// linesBefore are the checkpoints that the outcomes before a segment's resume point made.
func (s *segments) linesBefore(under *segmentRun, at time.Time) []protocol.Line {
	made := checkpointLog{run: s.checkpoints.run}
	whole, err := under.result.Whole()
	if err != nil {
		panic(err.Error())
	}
	loop, err := s.program.Restore(under.from, func(e pregel.Event) {
		if e.Kind == pregel.EventCheckpoint && e.Namespace == "" {
			made.add(s.program, e.Checkpoint, at)
		}
	})
	if err == nil {
		_, err = segment.Redeliver(loop, loop.Ready(), whole.Deliveries[:under.result.Resume.Deliveries], nil)
	}
	if err != nil {
		panic(err.Error())
	}
	return made.lines
}
