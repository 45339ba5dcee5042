package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// handBack makes the result of an expert's run small: its leader gets the message, with a reference to the output, which
// stays in the run's history with everything else. output is what the graph returned, nil when it did not. The result of
// any other run stays as it is.
func (e *engine) handBack(ctx workflow.Context, result protocol.GraphResult, output map[string]pregel.Value) protocol.GraphResult {
	if !e.in.Expert {
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
