package stream

import (
	"encoding/json"
	"maps"

	"superstep.dev/graphadapter/pregel"
)

// The keys that LangGraph marks special things with.
const (
	interruptKey = "__interrupt__"
	metadataKey  = "__metadata__"
	overwriteKey = "__overwrite__"
	writesKey    = "$writes"
)

// Question is an interrupt as the streams show it.
type Question struct {
	Value json.RawMessage `json:"value"`
	ID    string          `json:"id"`
	// Schema is the JSON schema of the answer, under the name that LangGraph gives it; absent for any JSON.
	Schema json.RawMessage `json:"response_schema,omitempty"`
}

func questionsOf(asked []pregel.Question) []Question {
	out := make([]Question, len(asked))
	for i, q := range asked {
		out[i] = Question{Value: q.Value, ID: q.ID, Schema: q.Schema}
	}
	return out
}

// started is the start of a task.
func (b *batch) started() {
	if b.shaper.wanted[Messages] {
		b.markInput()
	}
	t := b.event.Task
	b.task("task", func() any {
		return struct {
			ID       string   `json:"id"`
			Name     string   `json:"name"`
			Input    any      `json:"input"`
			Triggers []string `json:"triggers"`
		}{t.Key(), t.Node, b.graph.inputOf(t), b.graph.triggersOf(t)}
	})
}

func (b *batch) task(kind string, data func() any) { b.debugged(Tasks, kind, b.event.Step, data) }

// result is the end of a task.
func (b *batch) result() any {
	t := b.event.Task
	return struct {
		ID         string            `json:"id"`
		Name       string            `json:"name"`
		Error      *pregel.NodeError `json:"error"`
		Result     map[string]any    `json:"result"`
		Interrupts []Question        `json:"interrupts"`
	}{t.Key(), t.Node, b.event.Error, b.graph.resultOf(b.event.Writes), questionsOf(b.event.Questions)}
}

// resultOf is a task's writes by channel; several to one channel are marked as such.
func (g *graph) resultOf(writes []pregel.Write) map[string]any {
	values := map[string][]any{}
	for _, w := range writes {
		if g.channels[w.Channel] {
			values[w.Channel] = append(values[w.Channel], shown(w))
		}
	}
	out := make(map[string]any, len(values))
	for channel, all := range values {
		out[channel] = all[0]
		if len(all) > 1 {
			out[channel] = map[string]any{writesKey: all}
		}
	}
	return out
}

// shown is a written value; one that replaces what was reduced so far says so.
func shown(w pregel.Write) any {
	if w.Overwrite {
		return map[string]any{overwriteKey: w.Value}
	}
	return w.Value
}

// values are the output channels, or what a function returned.
func (b *batch) values() any {
	if b.graph.spec.Function {
		return b.event.Values()[pregel.FunctionOutput]
	}
	return b.event.Values()
}

// update is {node: what it wrote to output channels}.
func (b *batch) update() any {
	out := map[string]any{b.event.Task.Node: b.graph.updateOf(b.event.Writes)}
	if b.event.Cached {
		out[metadataKey] = map[string]any{"cached": true}
	}
	return out
}

// updateOf is one object, nil without writes, and a list of objects with one key each when a channel was written more
// than once.
func (g *graph) updateOf(writes []pregel.Write) any {
	one, each := map[string]any{}, []any{}
	for _, w := range writes {
		if g.outputs[w.Channel] {
			one[w.Channel] = shown(w)
			each = append(each, map[string]any{w.Channel: shown(w)})
		}
	}
	switch {
	case len(each) == 0:
		return nil
	case g.spec.Function:
		return one[pregel.FunctionOutput]
	case len(each) > len(one):
		return each
	}
	return one
}

// interrupted is what a task asks, once as an update and once with the values that it found; or a static breakpoint.
func (b *batch) interrupted() {
	asked := map[string]any{interruptKey: questionsOf(b.event.Questions)}
	b.add(0, Updates, func() any { return asked })
	if b.event.Task == nil {
		return
	}
	b.add(1, Values, func() any {
		values := map[string]any{}
		if b.event.Work != nil && !b.graph.spec.Function {
			for channel, v := range b.graph.program.OutputOf(b.event.Work) {
				values[channel] = v
			}
		}
		maps.Copy(values, asked)
		return values
	})
}

// reset says that what the attempts before this one emitted is void.
func (b *batch) reset() {
	t := b.event.Task
	b.shaper.unsee(t)
	if !b.shaper.wanted[Custom] && !b.shaper.wanted[Messages] {
		return
	}
	b.put(0, Reset, b.event.Step, struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Attempt int    `json:"attempt"`
	}{t.Key(), t.Node, b.event.Attempt})
}
