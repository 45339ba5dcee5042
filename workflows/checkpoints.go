package workflows

import (
	"encoding/json"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// maxLines bounds the checkpoints that the history query shows: the newest. Older ones are in the event history.
const maxLines = 1000

// moreLines is how many more are kept before the oldest are dropped: to drop one at a time would copy all that stay.
const moreLines = 250

// checkpointLog are the thread's latest checkpoints, oldest first.
type checkpointLog struct {
	run   string // the run's id
	lines []protocol.Line
	gaps  []gap // oldest first
}

// gap are checkpoints that the run passed over. They come before lines[at].
type gap struct {
	at   int
	made func() []protocol.Line
}

func (l *checkpointLog) add(p *pregel.Program, r *pregel.Record, at time.Time) {
	ran, wrote := p.Made(r)
	l.lines = append(l.lines, protocol.Line{
		Step: r.Checkpoint.Step, Checkpoint: r.Checkpoint.ID, Parent: r.Checkpoint.Parent, Source: r.Checkpoint.Source,
		Ran: ran, Wrote: wrote, Next: p.Next(r), Run: l.run, At: at.UnixMilli(),
	})
	if len(l.lines) >= maxLines+moreLines {
		l.drop(len(l.lines) - maxLines)
	}
}

// when is when a checkpoint was made, in milliseconds since 1970; 0 when that is not known any more.
func (l *checkpointLog) when(checkpoint string) int64 {
	for _, line := range slices.Backward(l.lines) {
		if line.Checkpoint == checkpoint {
			return line.At
		}
	}
	return 0
}

// passOver leaves out the checkpoints that come next; made makes them for whoever asks for so many.
func (l *checkpointLog) passOver(made func() []protocol.Line) {
	l.gaps = append(l.gaps, gap{at: len(l.lines), made: made})
}

// drop forgets the oldest.
func (l *checkpointLog) drop(oldest int) {
	l.lines = slices.Clone(l.lines[oldest:])
	l.gaps = slices.DeleteFunc(l.gaps, func(g gap) bool { return g.at <= oldest })
	for i := range l.gaps {
		l.gaps[i].at -= oldest
	}
}

// latest are the newest of them, at most that many.
func (l *checkpointLog) latest(most int) []protocol.Line {
	for last := len(l.gaps) - 1; last >= 0 && len(l.lines)-l.gaps[last].at < most; last-- {
		l.lines = slices.Insert(slices.Clone(l.lines), l.gaps[last].at, l.gaps[last].made()...)
		l.gaps = l.gaps[:last]
	}
	return l.lines[max(0, len(l.lines)-most):]
}

// handBack makes the result of an expert's run small: its leader gets the message, with a reference to the output, which
// stays in the run's history with everything else. output is what the graph returned, nil when it did not. The result of
// any other run stays as it is.
func (e *engine) handBack(ctx workflow.Context, result protocol.GraphResult, output map[string]pregel.Value) protocol.GraphResult {
	if !e.in.Expert {
		result.ForParent = workflow.GetInfo(ctx).ParentWorkflowExecution != nil
		return result
	}
	brief := protocol.GraphResult{Graph: result.Graph, Stored: true, Closing: protocol.Closing{Step: result.Step}}
	if output != nil {
		m := messageIn(output)
		record(ctx, protocol.ExpertRecord{Message: &m})
		brief.Message = inline(m, workflow.GetInfo(ctx).WorkflowExecution)
	}
	record(ctx, protocol.ExpertRecord{Result: &result})
	return brief
}

// record writes a marker into the run's history. What is in it decides nothing.
func record(ctx workflow.Context, what protocol.ExpertRecord) {
	workflow.SideEffect(ctx, func(workflow.Context) any { return what })
}

// inline is a message with a reference to its output, and without the output when that is long.
func inline(m job.WorkflowMessage, run workflow.Execution) *job.WorkflowMessage {
	m.Stored = nil
	if m.Output != "" {
		ref := job.ReferTo(run.ID, run.RunID, m.Output)
		m.Stored = &ref
	}
	if len(m.Output) > job.MaxInline {
		m.Output = ""
	}
	return &m
}

// messageIn is the message that an expert's graph returned: the value of its one output channel, or else an object of its
// output channels.
func messageIn(output map[string]pregel.Value) job.WorkflowMessage {
	var m job.WorkflowMessage
	if err := json.Unmarshal(returned(output), &m); err != nil {
		return protocol.NoMessage("it returned no message that a leader can read: "+err.Error(), job.Usage{Unknown: true})
	}
	return protocol.CheckedMessage(m)
}

// returned is what a graph returned, as one JSON value.
func returned(output map[string]pregel.Value) []byte {
	if len(output) == 1 {
		value := output[workflow.DeterministicKeys(output)[0]]
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) == nil && object != nil {
			return value
		}
	}
	text, err := json.Marshal(output)
	if err != nil {
		return nil // which is no message either
	}
	return text
}
